#pragma once
// The parts of the step loop by which ChoiceRunner (ordinary requests) and BeamRunner (beam searches) choose a step's
// tokens. The step loop owns them. Engine thread only.

#include "engine/step/endings.h"
#include "engine/step/late_masks.h"
#include "engine/step/late_texts.h"
#include "engine/step/outbox.h"
#include "engine/step/token_picker.h"
#include "model/text_head.h"
#include "sample/row_asks.h"
#include "sched/scheduler.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::engine {

struct ChooserParts {
  sched::Scheduler& scheduler;
  TokenPicker& picker;
  LateMasks& masks;
  LateTexts& texts;
  sample::RowAsks& asks;
  Outbox& outbox;
  Endings& endings;
  const kernels::KernelTable& kernels;
  const model::TextHead& head;
  const text::Tokenizer& tokenizer;
};

}  // namespace candor::engine
