// The table of known tokenizer.ggml.pre names. Sources: the pre_tokenizer sections of the published tokenizer.json
// files; the names are those that converters to GGUF write.
#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <string_view>

#include "text/tokenizer/char_class.h"
#include "text/tokenizer/split_rule.h"

namespace candor::text {
namespace {

// ---- Patterns. Prefix classes: what one character may stand before a word and belong to it.
constexpr CharClass kBlankOnly = in(kBlank);
constexpr CharClass kNoLetterNumberLineEnd = not_in(kLineEnd | kLetter | kNumber);
constexpr CharClass kOther = not_in(kSpace | kLetter | kNumber);  // [^\s\p{L}\p{N}]

constexpr Pattern kSmallContraction = {.kind = PatternKind::kContraction};
constexpr Pattern kContraction = {.kind = PatternKind::kContraction, .any_case = true};
constexpr Pattern kLineEnds = {.kind = PatternKind::kLineEnds};
constexpr Pattern kSpaceBeforeSpace = {.kind = PatternKind::kSpaceBeforeSpace};
constexpr Pattern kSpaces = run(in(kSpace));
constexpr Pattern kDigit = run(in(kNumber), 1, 1);
constexpr Pattern kThreeDigits = run(in(kNumber), 1, 3);
constexpr Pattern kNumbers = run(in(kNumber));
constexpr Pattern kWord = run(in(kLetter)).after(kNoLetterNumberLineEnd);
constexpr Pattern kOthers = run(kOther).after(kBlankOnly).then(in(kLineEnd));
constexpr Pattern kOthersSlash = run(kOther).after(kBlankOnly).then(in(kLineEnd | kSlash));
constexpr Pattern kCasedWord = {.kind = PatternKind::kCasedWord, .prefix = kNoLetterNumberLineEnd};
constexpr Pattern kCasedWordContraction = {
    .kind = PatternKind::kCasedWord, .prefix = kNoLetterNumberLineEnd, .with_contraction = true};
constexpr Pattern kCasedWordNoHan = {
    .kind = PatternKind::kCasedWord, .body = {0, kHan}, .prefix = kNoLetterNumberLineEnd, .with_contraction = true};

// ---- Stages.
constexpr std::array kGpt2Words = {kSmallContraction,
                                   run(in(kLetter)).after(kBlankOnly),
                                   run(in(kNumber)).after(kBlankOnly),
                                   run(kOther).after(kBlankOnly),
                                   kSpaceBeforeSpace,
                                   kSpaces};
constexpr std::array kLlama3Words = {kContraction, kWord, kThreeDigits, kOthers, kLineEnds, kSpaceBeforeSpace, kSpaces};
constexpr std::array kQwen2Words = {kContraction, kWord, kDigit, kOthers, kLineEnds, kSpaceBeforeSpace, kSpaces};
constexpr std::array kQwen35Words = {
    kContraction, run(in(kLetter | kMark)).after(kNoLetterNumberLineEnd),
    kDigit,       run(not_in(kSpace | kLetter | kMark | kNumber)).after(kBlankOnly).then(in(kLineEnd)),
    kLineEnds,    kSpaceBeforeSpace,
    kSpaces};
constexpr std::array kMiniCpm5Words = {kContraction, kWord, kNumbers, kOthers, kLineEnds, kSpaceBeforeSpace, kSpaces};
constexpr std::array kSeedCoderWords = {kContraction,      kWord,  kDigit, run(kOther).after(kBlankOnly), kLineEnds,
                                        kSpaceBeforeSpace, kSpaces};
constexpr std::array kTekkenWords = {kCasedWord, kDigit, kOthersSlash, kLineEnds, kSpaceBeforeSpace, kSpaces};
constexpr std::array kGpt4oWords = {kCasedWordContraction, kThreeDigits, kOthersSlash, kLineEnds,
                                    kSpaceBeforeSpace,     kSpaces};
constexpr std::array kKimiWords = {run(in(kHan)), kCasedWordNoHan,   kThreeDigits, kOthers,
                                   kLineEnds,     kSpaceBeforeSpace, kSpaces};
constexpr std::array kDeepSeek3Words = {
    run(in(kAsciiLetter)).only_after(in(kAsciiPunctuation)),
    run(in(kLetter | kMark)).after(not_in(kLineEnd | kLetter | kPunctuation | kSymbol)),
    run(in(kPunctuation | kSymbol)).after(kBlankOnly).then(in(kLineEnd)),
    kLineEnds,
    kSpaceBeforeSpace,
    kSpaces};
constexpr std::array kBloomWords = {run(not_in(kSpace | kWordStop)).after(kBlankOnly)};

constexpr std::array kEachDigit = {kDigit};
constexpr std::array kDigitsByThree = {kThreeDigits};
constexpr std::array kDigitRuns = {kNumbers};
constexpr std::array kAsciiTriples = {run(in(kAsciiDigit), 3, 3)};
constexpr std::array kWholeNumberGroups = {Pattern{.kind = PatternKind::kDigitGroup}};
constexpr std::array kPunctuationRuns = {run(in(kPunctuation | kMathPunctuation))};
constexpr std::array kFalconPunctuation = {run(in(kPunctuation | kMathPunctuation | kBacktick))};
constexpr std::array kEachLineEnd = {run(in(kLineEnd), 1, 1)};
constexpr std::array kSpacedLetters = {run(in(kLetter)).after(in(kSpace))};
constexpr std::array kSpacedPunctuation = {run(in(kPunctuation)).after(in(kSpace))};
constexpr std::array kSpacedCasedLetters = {run(in(kCasedLetter)).after(in(kSpace))};
constexpr std::array kSpacedWidePunctuation = {run(in(kWidePunctuation)).after(in(kSpace))};
constexpr std::array kFinalSpaces = {Pattern{.kind = PatternKind::kSpaceAtEnd}};
constexpr std::array kEastAsianRuns = {run(in(kEastAsian))};
constexpr std::array kIdeographRuns = {run(in(kIdeographKana))};

// ---- Rules.
constexpr std::array<Stage, 1> kGpt2Stages = {kGpt2Words};
constexpr std::array<Stage, 2> kStarCoderStages = {kEachDigit, kGpt2Words};
constexpr std::array<Stage, 3> kFalconStages = {kFalconPunctuation, kGpt2Words, kAsciiTriples};
constexpr std::array<Stage, 4> kDefaultStages = {kPunctuationRuns, kGpt2Words, kDigitRuns, kAsciiTriples};
constexpr std::array<Stage, 1> kLlama3Stages = {kLlama3Words};
constexpr std::array<Stage, 1> kQwen2Stages = {kQwen2Words};
constexpr std::array<Stage, 1> kQwen35Stages = {kQwen35Words};
constexpr std::array<Stage, 2> kMiniCpm5Stages = {kDigitsByThree, kMiniCpm5Words};
constexpr std::array<Stage, 1> kSeedCoderStages = {kSeedCoderWords};
constexpr std::array<Stage, 1> kTekkenStages = {kTekkenWords};
constexpr std::array<Stage, 1> kGpt4oStages = {kGpt4oWords};
constexpr std::array<Stage, 2> kTinyAyaStages = {kWholeNumberGroups, kGpt4oWords};
constexpr std::array<Stage, 1> kKimiStages = {kKimiWords};
constexpr std::array<Stage, 5> kDeepSeekCoderStages = {kEachLineEnd, kSpacedLetters, kSpacedPunctuation, kEastAsianRuns,
                                                       kEachDigit};
constexpr std::array<Stage, 6> kDeepSeekLlmStages = {kEachLineEnd, kSpacedCasedLetters, kSpacedWidePunctuation,
                                                     kFinalSpaces, kEastAsianRuns,      kDigitRuns};
constexpr std::array<Stage, 3> kDeepSeek3Stages = {kDigitsByThree, kIdeographRuns, kDeepSeek3Words};
constexpr std::array<Stage, 1> kBloomStages = {kBloomWords};
constexpr std::array<Stage, 2> kVikingStages = {kBloomWords, kEachDigit};

constexpr SplitRule kGpt2 = {"gpt-2", kGpt2Stages};
constexpr SplitRule kStarCoder = {"starcoder", kStarCoderStages};
constexpr SplitRule kFalcon = {"falcon", kFalconStages};
constexpr SplitRule kDefault = {"default", kDefaultStages};
constexpr SplitRule kLlama3 = {"llama-3", kLlama3Stages};
constexpr SplitRule kQwen2 = {"qwen2", kQwen2Stages};
constexpr SplitRule kQwen35 = {"qwen3.5", kQwen35Stages};
constexpr SplitRule kMiniCpm5 = {"minicpm5", kMiniCpm5Stages};
constexpr SplitRule kSeedCoder = {"seed-coder", kSeedCoderStages};
constexpr SplitRule kTekken = {"tekken", kTekkenStages};
constexpr SplitRule kGpt4o = {"gpt-4o", kGpt4oStages};
constexpr SplitRule kTinyAya = {"tiny_aya", kTinyAyaStages};
constexpr SplitRule kKimi = {"kimi-k2", kKimiStages, true};
constexpr SplitRule kDeepSeekCoder = {"deepseek-coder", kDeepSeekCoderStages, true};
constexpr SplitRule kDeepSeekLlm = {"deepseek-llm", kDeepSeekLlmStages, true};
constexpr SplitRule kDeepSeek3 = {"deepseek-v3", kDeepSeek3Stages, true};
constexpr SplitRule kBloom = {"bloom", kBloomStages};
constexpr SplitRule kViking = {"viking", kVikingStages};

// name, rule, whole piece first, adds the beginning token
constexpr PreTokenizer kPreTokenizers[] = {
    {"a.x-4.0", &kGpt2},
    {"bailingmoe", &kQwen2},
    {"bailingmoe2", &kQwen2},
    {"bloom", &kBloom},
    {"chatglm-bpe", &kLlama3},
    {"codeshell", &kStarCoder},
    {"cohere2moe", &kTinyAya},
    {"command-r", &kStarCoder},
    {"dbrx", &kLlama3},
    {"deepseek-coder", &kDeepSeekCoder},
    {"deepseek-llm", &kDeepSeekLlm},
    {"deepseek-r1-qwen", &kQwen2},
    {"deepseek-v3", &kDeepSeek3},
    {"default", &kDefault},
    {"exaone", &kStarCoder},
    {"exaone4", &kGpt2},
    {"f2llmv2", &kQwen2},
    {"falcon", &kFalcon},
    {"falcon-h1", &kLlama3, true, true},
    {"falcon3", &kLlama3, true, true},
    {"gigachat", &kGpt2},
    {"glm4", &kLlama3},
    {"gpt-2", &kGpt2},
    {"gpt-4o", &kGpt4o},
    {"gpt3-finnish", &kBloom},
    {"granite-docling", &kGpt2},
    {"grok-2", &kQwen2},
    {"hunyuan", &kQwen2},
    {"hunyuan-dense", &kDeepSeek3},
    {"jais", &kGpt2},
    {"joyai-llm", &kDeepSeek3},
    {"kanana2", &kGpt4o},
    {"kimi-k2", &kKimi},
    {"kormo", &kQwen2},
    {"lfm2", &kLlama3, true, true},
    {"llada-moe", &kQwen2},
    {"llama-bpe", &kLlama3, true, true},
    {"llama-v3", &kLlama3, true, true},
    {"llama3", &kLlama3, true, true},
    {"llama4", &kGpt4o},
    {"megrez", &kQwen2},
    {"mellum", &kGpt2},
    {"mellum2", &kStarCoder},
    {"midm-2.0", &kLlama3, true, true},
    {"minerva-7b", &kStarCoder},
    {"minicpm5", &kMiniCpm5, true},
    {"minimax-m2", &kGpt4o},
    {"mpt", &kGpt2},
    {"olmo", &kGpt2},
    {"phi-2", &kGpt2},
    {"pixtral", &kLlama3, true, true},
    {"poro-chat", &kBloom},
    {"qwen2", &kQwen2},
    {"qwen35", &kQwen35},
    {"refact", &kStarCoder},
    {"seed-coder", &kSeedCoder},
    {"smaug-bpe", &kLlama3},
    {"smollm", &kStarCoder},
    {"solar-open", &kQwen2},
    {"stablelm", &kQwen2},
    {"stablelm2", &kQwen2},
    {"starcoder", &kStarCoder},
    {"talkie", &kGpt4o},
    {"tekken", &kTekken, true, true},
    {"tiny_aya", &kTinyAya},
    {"trillion", &kGpt2},
    {"viking", &kViking},
};

}  // namespace

std::span<const PreTokenizer> pre_tokenizers() {
  return kPreTokenizers;
}

const PreTokenizer* find_pre_tokenizer(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kPreTokenizers), std::end(kPreTokenizers),
                                         [name](const PreTokenizer& known) { return known.name == name; });
  return found == std::end(kPreTokenizers) ? nullptr : found;
}

}  // namespace candor::text
