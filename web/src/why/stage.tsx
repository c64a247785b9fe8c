// One stage: who was left, who was cut, and whose logit moved.
import type { Candidate, Stage } from "../api/types";
import type { Settings } from "../store/types";
import { IconButton, percent, visible } from "../ui/parts";
import { penaltyWords } from "./penalties";

const meanings: Record<string, string> = {
  logits: "what the model says",
  mask: "what the form of the answer allows here",
  bans: "biases, bans and allowed ids",
  penalties: "what was said before is lowered",
  dry: "what goes on with a repetition is lowered",
  temperature: "logits divided by the temperature",
  top_k: "the K most likely stay",
  typical_p: "the share nearest to the entropy stays",
  top_p: "the shortest beginning that reaches P stays",
  min_p: "what is below P x the best goes",
  xtc: "the top choices go, but for the last of them",
};

interface RowProps {
  candidate: Candidate;
  was?: Candidate;
  state: "left" | "cut" | "lowered";
  isChosen: boolean;
  note: string;
  onChoose: ((candidate: Candidate) => void) | null;
}

function CandidateRow({ candidate, was, state, isChosen, note, onChoose }: RowProps) {
  const moved = was && Math.abs(was.probability - candidate.probability) >= 0.0005 ? candidate.probability - was.probability : 0;
  return (
    <tr class={`is-${state}${isChosen ? " is-chosen" : ""}`} data-token={candidate.token} data-logit={candidate.logit} data-probability={candidate.probability}>
      <td>
        {state === "cut" ? <del><code>{visible(candidate.text)}</code></del> : <code>{visible(candidate.text)}</code>}
        {note && <small>{note}</small>}
      </td>
      <td class="bar"><svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect width={Math.max(0.6, candidate.probability * 100)} height="8" /></svg></td>
      <td class="n">{state === "cut" ? "cut" : percent(candidate.probability)}{moved !== 0 && <small class={moved > 0 ? "up" : "down"}>{moved > 0 ? "+" : "−"}{(Math.abs(moved) * 100).toFixed(1)}</small>}</td>
      <td class="n logit">{candidate.logit.toFixed(3)}</td>
      <td>{onChoose && !isChosen && <IconButton icon="branch" label={`Go on from here with ${visible(candidate.text)} instead`} onClick={() => onChoose(candidate)} />}</td>
    </tr>
  );
}

// Every logit that the stage changed, whether its token is among those above or not.
function Changed({ stage }: { stage: Stage }) {
  if (stage.n_changed === 0) return null;
  const rest = stage.n_changed - stage.changed.length;
  return (
    <details class="changed">
      <summary>{stage.n_changed === 1 ? "1 logit" : `${stage.n_changed.toLocaleString("en")} logits`} changed</summary>
      <ul>
        {stage.changed.map((change) => (
          <li key={change.token} data-changed={change.token}>
            <code>{visible(change.text)}</code> {change.before.toFixed(3)} → {change.after.toFixed(3)}
            {change.n_in_text > 0 && <small> {change.n_in_text} × in the text, {change.n_in_output} of them in the answer</small>}
          </li>
        ))}
        {rest > 0 && <li class="quiet">and {rest.toLocaleString("en")} more</li>}
      </ul>
    </details>
  );
}

interface Props {
  stage: Stage;
  before?: Stage;
  chosen: number;
  isLast: boolean;
  settings?: Settings;
  onChoose: ((candidate: Candidate) => void) | null;
}

export function StageCard({ stage, before, chosen, isLast, settings, onChoose }: Props) {
  const wasOf = (token: number) => before?.best.find((one) => one.token === token);
  const gone = before ? before.n_left - stage.n_left : 0;
  const noteOf = (candidate: Candidate) => {
    const was = wasOf(candidate.token);
    if (!was || (stage.name !== "penalties" && stage.name !== "dry")) return "";
    return stage.name === "penalties" ? penaltyWords(was.logit, candidate.logit, settings) : candidate.logit !== was.logit ? `dry ${(candidate.logit - was.logit).toFixed(3)}` : "";
  };
  const row = (state: RowProps["state"]) => (candidate: Candidate) => (
    <CandidateRow key={candidate.token} candidate={candidate} was={wasOf(candidate.token)} state={state} note={noteOf(candidate)}
                  isChosen={candidate.token === chosen} onChoose={onChoose} />
  );
  return (
    <section class={`stage${isLast ? " is-last" : ""}`} data-stage={stage.name} data-left={stage.n_left}>
      <header>
        <h3>{stage.name.replaceAll("_", "-")}</h3>
        <span>{meanings[stage.name] ?? ""}</span>
        <b>{stage.n_left.toLocaleString("en")} left{gone > 0 ? <em title="cut here, and their probability together"> −{gone.toLocaleString("en")} ({percent(stage.cut_probability)})</em> : ""}</b>
      </header>
      <table>
        <caption class="spoken">Candidates after {stage.name}</caption>
        <thead class="spoken"><tr><th scope="col">Token</th><th scope="col">Share</th><th scope="col">Probability</th><th scope="col">Logit</th><th scope="col">Go on</th></tr></thead>
        <tbody>
          {stage.best.map(row("left"))}
          {stage.lowered.map(row("lowered"))}
          {stage.cut.map(row("cut"))}
        </tbody>
      </table>
      <Changed stage={stage} />
    </section>
  );
}
