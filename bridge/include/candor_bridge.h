/* Constraints on generated text (llguidance) behind a small C interface. Chat templates, and trials of constraints, are the
 * business of a process of its own: candor_helper.h.
 *
 * Contract, for every function:
 * - Input is untrusted: any bytes give a result or an error. Nothing is printed, read from disk, or fetched; a panic inside
 *   is CANDOR_INTERNAL. Time and memory are bounded where the function says so.
 * - Borrowed: every candor_bytes and array argument, for the duration of the call only. Text need not end in NUL and may
 *   hold NUL; text that is not UTF-8 is CANDOR_INVALID. `data` may be null where `size` is 0.
 * - Owned by the caller: handles and candor_text that a successful call wrote, and error->message after a failed one; free
 *   each with its own function, once. Freeing null or a zeroed struct does nothing.
 * - `error` may be null. A call that returns CANDOR_OK leaves it untouched; a failed one overwrites it without freeing
 *   what it held, and leaves every other out-parameter untouched.
 * - Threads: const handles may be used by several threads at once; others by one thread at a time, on any thread. */
#ifndef CANDOR_BRIDGE_H_
#define CANDOR_BRIDGE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum candor_status {
  CANDOR_OK = 0,
  CANDOR_INVALID = 1,     /* the input is wrong; the message says where */
  CANDOR_RAISED = 2,      /* the template called raise_exception; the message is its own words */
  CANDOR_LIMIT = 3,       /* a limit on size, depth, work or time was met */
  CANDOR_UNSUPPORTED = 4, /* may be right, but can't be done, and is not silently dropped */
  CANDOR_INTERNAL = 5,    /* a fault of the library */
  CANDOR_BUSY = 6         /* others take what this would need; later it may be done */
} candor_status;

typedef struct candor_bytes {
  const uint8_t* data;
  size_t size;
} candor_bytes;

typedef struct candor_text {
  char* data; /* UTF-8, with a NUL at data[size] */
  size_t size;
} candor_text;

typedef struct candor_error {
  candor_status status;
  uint32_t line; /* of the template, from 1; 0 where there is none */
  candor_text message;
} candor_error;

void candor_text_free(candor_text* text);    /* also zeroes it */
void candor_error_clear(candor_error* error); /* frees the message and zeroes the struct */

/* ---- Constraints */

typedef struct candor_tok_env candor_tok_env; /* immutable; what is compiled from it may outlive it */

typedef struct candor_vocab {
  const candor_bytes* tokens; /* [n_tokens] the bytes of each token, no word-boundary marks; empty: stands for no text */
  const bool* is_special;     /* [n_tokens] control tokens: never allowed as text; may be null */
  size_t n_tokens;
  const uint32_t* eos_tokens; /* [n_eos_tokens] at least one; taken as special */
  size_t n_eos_tokens;
} candor_vocab;

/* About 1.7 s of one core and 64 MB for 150 000 tokens: once a model, and best when the first constraint asks for it. */
candor_status candor_tok_env_create(const candor_vocab* vocab, candor_tok_env** out, candor_error* error);
void candor_tok_env_free(candor_tok_env* handle);

typedef enum candor_grammar_kind {
  CANDOR_JSON_SCHEMA = 0, /* source: the schema, draft 2020-12. A keyword that can't be enforced is CANDOR_UNSUPPORTED with
                             its pointer. README.md says which keywords are put in other words */
  CANDOR_JSON_OBJECT = 1, /* source is ignored */
  CANDOR_REGEX = 2,       /* the whole text matches; syntax of the Rust regex crate, no look-around */
  CANDOR_LARK = 3,        /* llguidance's Lark dialect; begins at `start` */
  CANDOR_CHOICE = 4       /* source: a JSON array of strings */
} candor_grammar_kind;

typedef struct candor_constraint candor_constraint;

/* One of those compiled last, at its start; null where there is none, or its constraint. CANDOR_BUSY as below. */
candor_status candor_constraint_known(const candor_tok_env* env, candor_grammar_kind kind, candor_bytes source,
                                      candor_constraint** out, candor_error* error);

/* REQUIRES: a helper has tried the same kind and source with the same vocabulary, without an error. The same is done again
 * here, on a thread with a large stack, which is waited for; only by that trial are its time (2 s) and its memory (256 MiB)
 * bounded. What is compiled keeps at most 64 MiB. Further limits: 1 MiB of source, depth 64 (schema) or 256 (regex, grammar), counts of
 * 100 000, 3000 properties of an object, 8 patterns on one string, 8000 lines of grammar. Small ones take milliseconds.
 * CANDOR_BUSY: the constraints in use take all of 1 GiB, with this one. */
candor_status candor_constraint_compile(const candor_tok_env* env, candor_grammar_kind kind, candor_bytes source,
                                        candor_constraint** out, candor_error* error);

/* What has no effect in the source of a constraint that compiles: words of a schema that are no keywords, and formats that
 * are not known. One sentence a line, at most 17, short; empty where there is nothing to say. */
candor_status candor_constraint_without_effect(candor_grammar_kind kind, candor_bytes source, candor_text* out,
                                               candor_error* error);

/* A copy in the same state, cheap. Copies share caches under a lock and may live on different threads. Null on failure. */
candor_constraint* candor_constraint_fork(const candor_constraint* handle);
void candor_constraint_free(candor_constraint* handle);

/* words: bit i % 32 of words[i / 32] says whether token i may come next; all n_words are written, bits past the vocabulary
 * with 0. n_words >= ceil(n_tokens / 32). End-of-sequence tokens are allowed where the text may end, and only they are
 * once candor_constraint_is_stopped. CANDOR_LIMIT: too much work at this point, or 256 MiB of states with those of its
 * forks; the constraint is then stopped for good. */
candor_status candor_constraint_mask(candor_constraint* handle, uint32_t* words, size_t n_words, candor_error* error);

/* Advances by one token. CANDOR_INVALID, with nothing changed, when the token is not allowed here. */
candor_status candor_constraint_accept(candor_constraint* handle, uint32_t token, candor_error* error);

bool candor_constraint_is_accepting(candor_constraint* handle); /* may the text end here? */
bool candor_constraint_is_stopped(const candor_constraint* handle); /* must it? (also after a failure) */

/* ---- Words of a text, by the expressions of a tokenizer */

typedef struct candor_splitter candor_splitter; /* immutable */

typedef enum candor_split_behavior { /* what becomes of a match, in the words of the `tokenizers` library */
  CANDOR_SPLIT_ISOLATED = 0,
  CANDOR_SPLIT_REMOVED = 1,
  CANDOR_SPLIT_MERGED_WITH_PREVIOUS = 2,
  CANDOR_SPLIT_MERGED_WITH_NEXT = 3,
  CANDOR_SPLIT_CONTIGUOUS = 4
} candor_split_behavior;

typedef struct candor_split_step {
  candor_bytes expression; /* Oniguruma's syntax, Ruby's form; at most 8 KiB, all together 16 */
  int32_t behavior;        /* candor_split_behavior */
  bool invert;             /* what does not match counts as a match, and the other way round */
  bool over_bytes;         /* of this step and those behind it: characters are the bytes, in GPT-2's alphabet */
} candor_split_step;

/* Steps cut one after another, at most 64, each the pieces that the one before left. CANDOR_UNSUPPORTED names what an
 * expression holds that is not known: references back, \K, \X, flags but i, look-behind over several lengths. */
candor_status candor_splitter_create(const candor_split_step* steps, size_t n_steps, candor_splitter** out,
                                     candor_error* error);
void candor_splitter_free(candor_splitter* handle);

typedef struct candor_spans {
  size_t* ends; /* [2 * size] begin and end of each span, in bytes */
  size_t size;
} candor_spans;
void candor_spans_free(candor_spans* spans); /* also zeroes it */

/* The words of a text of any bytes, in order; what a step removes is in none of them. steps: how much work it may be, about
 * 10 ns each; what it was is taken off. Memory: 60 MiB and 60 bytes for each byte. CANDOR_LIMIT beyond either. */
candor_status candor_splitter_split(const candor_splitter* handle, candor_bytes text, uint64_t* steps, candor_spans* out,
                                    candor_error* error);

#ifdef __cplusplus
}
#endif
#endif /* CANDOR_BRIDGE_H_ */
