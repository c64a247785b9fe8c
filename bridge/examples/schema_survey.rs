//! Schemas with their test instances, each compiled here and by the compiler below as it stands: how many compile, which
//! instances can be written, and what masks cost on the way through the valid ones.
//!
//!     schema_survey VOCABULARY FOLDER [REFUSALS]
//!
//! VOCABULARY has a token a line, its bytes in hexadecimal; the last one ends a text. FOLDER has files with `schema` and
//! `tests`, a list of `data` and `valid`. Into REFUSALS go the schemas that are refused, and the instances that fare
//! otherwise than they say.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use candor_bridge::constraint::tok_env::{self, TokEnvironment};
use candor_bridge::constraint::{compile, Constraint, Kind};
use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{ApproximateTokEnv, TokEnv, TokRxInfo, TokTrie, TokenId};
use llguidance::{Matcher, ParserFactory};
use serde_json::Value;

const VISITS: usize = 2;

trait Writer: Sized {
    fn fork(&self) -> Self;
    fn mask(&mut self, words: &mut [u32]) -> bool;
    fn accept(&mut self, token: TokenId) -> bool;
    fn may_end(&mut self) -> bool;
}

impl Writer for Constraint {
    fn fork(&self) -> Self {
        Constraint::fork(self)
    }
    fn mask(&mut self, words: &mut [u32]) -> bool {
        Constraint::mask(self, words).is_ok()
    }
    fn accept(&mut self, token: TokenId) -> bool {
        matches!(Constraint::accept(self, token), Ok(true))
    }
    fn may_end(&mut self) -> bool {
        self.is_accepting()
    }
}

impl Writer for Matcher {
    fn fork(&self) -> Self {
        self.clone()
    }
    fn mask(&mut self, words: &mut [u32]) -> bool {
        let Ok(mask) = self.compute_mask_or_eos() else { return false };
        words.copy_from_slice(&mask.as_slice()[..words.len()]);
        true
    }
    fn accept(&mut self, token: TokenId) -> bool {
        self.try_consume_tokens(&[token]).is_ok_and(|n| n == 1)
    }
    fn may_end(&mut self) -> bool {
        self.is_accepting().unwrap_or(false)
    }
}

extern "C" {
    fn clock_gettime(clock: i32, time: *mut [i64; 2]) -> i32;
}

/// Of the processor: other work on the machine does not count.
fn thread_time() -> Duration {
    const OF_THREAD: i32 = 3;
    let mut time = [0i64; 2];
    assert_eq!(unsafe { clock_gettime(OF_THREAD, &mut time) }, 0);
    Duration::new(time[0] as u64, time[1] as u32)
}

#[derive(Default)]
struct Figures {
    name: &'static str,
    n_compiled: usize,
    compile_time: Duration,
    slowest: Duration,
    n_valid: usize,
    n_valid_written: usize,
    n_invalid: usize,
    n_invalid_written: usize,
    mask_times: [Vec<Duration>; VISITS],
}

struct Survey {
    words: Vec<u32>,
    refusals: Option<std::fs::File>,
}

impl Survey {
    fn note(&mut self, text: &str) {
        if let Some(file) = &mut self.refusals {
            writeln!(file, "{text}").unwrap();
        }
    }

    fn is_written(&mut self, mut writer: impl Writer, tokens: &[TokenId], times: &mut Vec<Duration>) -> bool {
        for token in tokens {
            let start = thread_time();
            let has_mask = writer.mask(&mut self.words);
            times.push(thread_time() - start);
            let is_in_mask = self.words[*token as usize / 32] >> (token % 32) & 1 == 1;
            if !has_mask || !is_in_mask || !writer.accept(*token) {
                return false;
            }
        }
        writer.may_end()
    }

    fn visit(&mut self, file: &str, root: &impl Writer, tests: &[(bool, Vec<TokenId>)], figures: &mut Figures) {
        for visit in 0..VISITS {
            for (i, (is_valid, tokens)) in tests.iter().enumerate() {
                let mut times = Vec::new();
                let is_written = self.is_written(root.fork(), tokens, &mut times);
                if *is_valid && is_written {
                    figures.mask_times[visit].append(&mut times);
                }
                if visit > 0 {
                    continue;
                }
                *(if *is_valid { &mut figures.n_valid } else { &mut figures.n_invalid }) += 1;
                if is_written {
                    *(if *is_valid { &mut figures.n_valid_written } else { &mut figures.n_invalid_written }) += 1;
                }
                if is_written != *is_valid {
                    let what = if is_written { "false accept" } else { "cannot be written" };
                    self.note(&format!("{}\t{what}\t{file}\t{i}", figures.name));
                }
            }
        }
    }

    fn compiled<W: Writer>(
        &mut self,
        file: &str,
        figures: &mut Figures,
        make: impl FnOnce() -> Result<W, String>,
    ) -> Option<W> {
        let start = Instant::now();
        let made = make();
        let time = start.elapsed();
        figures.compile_time += time;
        figures.slowest = figures.slowest.max(time);
        figures.n_compiled += usize::from(made.is_ok());
        made.map_err(|message| self.note(&format!("{}\trefused\t{file}\t{message}", figures.name))).ok()
    }
}

fn in_micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn print(figures: &mut Figures, n_schemas: usize) {
    println!(
        "{}: {} of {n_schemas} compile, mean {:.0} us, longest {:.0} us; {} of {} valid instances can be written, {} of {} invalid ones too",
        figures.name,
        figures.n_compiled,
        in_micros(figures.compile_time) / n_schemas as f64,
        in_micros(figures.slowest),
        figures.n_valid_written,
        figures.n_valid,
        figures.n_invalid_written,
        figures.n_invalid,
    );
    for (visit, times) in figures.mask_times.iter_mut().enumerate().filter(|(_, times)| !times.is_empty()) {
        times.sort_unstable();
        let at = |share: f64| in_micros(times[((times.len() - 1) as f64 * share) as usize]);
        let mean = times.iter().map(|t| in_micros(*t)).sum::<f64>() / times.len() as f64;
        println!(
            "  visit {}: {} masks, mean {mean:.1} us, p50 {:.1}, p90 {:.1}, p99 {:.1}, p99.9 {:.1}, most {:.0}",
            visit + 1,
            times.len(),
            at(0.5),
            at(0.9),
            at(0.99),
            at(0.999),
            at(1.0)
        );
    }
}

fn vocabulary(path: &str) -> Vec<Vec<u8>> {
    let byte = |line: &str, i: usize| u8::from_str_radix(&line[i..i + 2], 16).expect("hexadecimal");
    let text = std::fs::read_to_string(path).expect("a vocabulary");
    text.lines().map(|line| (0..line.len()).step_by(2).map(|i| byte(line, i)).collect()).collect()
}

fn plain_env(words: &[Vec<u8>]) -> TokEnv {
    let end = words.len() as TokenId - 1;
    let mut marked = words.to_vec();
    marked[end as usize].insert(0, TokTrie::SPECIAL_TOKEN_MARKER);
    Arc::new(ApproximateTokEnv::new(TokTrie::from(&TokRxInfo::new(words.len() as u32, end), &marked)))
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let words = vocabulary(&arguments[1]);
    let slices: Vec<&[u8]> = words.iter().map(|w| w.as_slice()).collect();
    let end = words.len() as TokenId - 1;
    let env: TokEnvironment = tok_env::new(&slices, &vec![false; words.len()], &[end]).expect("a vocabulary");
    let plain = plain_env(&words);
    let mut factory = ParserFactory::new_simple(&plain).expect("a vocabulary");
    factory.quiet();
    factory.limits_mut().verbose_errors = false;

    let mut survey = Survey {
        words: vec![0; words.len().div_ceil(32)],
        refusals: arguments.get(3).map(|path| std::fs::File::create(path).expect("a file to write")),
    };
    let mut ours = Figures { name: "here", ..Figures::default() };
    let mut theirs = Figures { name: "plain", ..Figures::default() };
    let mut files: Vec<_> = std::fs::read_dir(&arguments[2]).expect("a folder").map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for path in &files {
        let file = path.file_name().unwrap().to_string_lossy().to_string();
        let case: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let schema = &case["schema"];
        let tests: Vec<(bool, Vec<TokenId>)> = case["tests"]
            .as_array()
            .unwrap_or(&vec![])
            .iter()
            .map(|test| (test["valid"] == true, plain.tok_trie().greedy_tokenize(test["data"].to_string().as_bytes())))
            .collect();
        let text = schema.to_string();
        let made = survey.compiled(&file, &mut ours, || compile(&env, Kind::JsonSchema, &text).map_err(|e| e.message));
        if let Some(root) = made {
            survey.visit(&file, &root, &tests, &mut ours);
        }
        let made = survey.compiled(&file, &mut theirs, || {
            let parser = factory.create_parser(TopLevelGrammar::from_json_schema(schema.clone())).map_err(|e| e.to_string())?;
            let mut root = Matcher::new(Ok(parser));
            root.compute_mask().map_err(|e| e.to_string())?;
            Ok(root)
        });
        if let Some(root) = made {
            survey.visit(&file, &root, &tests, &mut theirs);
        }
    }
    print(&mut ours, files.len());
    print(&mut theirs, files.len());
}
