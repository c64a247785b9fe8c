/* Chat templates (minijinja) and constraints on generated text (llguidance) behind a small C interface.
 *
 * Contract, for every function:
 * - Input is untrusted: any bytes give a result or an error, within about 2 s (later on an overloaded machine). Nothing is
 *   printed, read from disk, or fetched; a panic inside is CANDOR_INTERNAL.
 * - Templates and compiling run on a short-lived thread with a 1 GiB stack (address space: only touched pages cost memory).
 *   One that is overdue is left to end by its own limits, and while 4 are, new ones are CANDOR_LIMIT. Memory is bounded
 *   only by the limits on size and work, not by a cap of its own.
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
  CANDOR_INTERNAL = 5     /* a fault of the library */
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

/* ---- Chat templates: jinja2 as the transformers library sets it up (trim_blocks, lstrip_blocks, loop controls, tojson
 * without HTML escapes, raise_exception, strftime_now, generation blocks, methods of str, list and dict). */

typedef struct candor_template candor_template; /* immutable */

candor_status candor_template_compile(candor_bytes source, candor_template** out, candor_error* error);
void candor_template_free(candor_template* handle);

/* context_json: an object whose keys are the template's variables; their order is kept. transformers also passes `tools`
 * and `documents` as null when there are none, and the special tokens by name (bos_token, ...).
 * now_seconds: what strftime_now shows, in seconds since 1970-01-01T00:00 of the wall clock to show (the caller adds its
 * offset to UTC); the text depends on nothing but the arguments.
 * Limits: 5 million steps, 2 s, 64 MiB of text. Memory that a template builds up in its own variables is not limited at all,
 * so a template must come from the operator's model file, never from a client. */
candor_status candor_template_render(const candor_template* handle, candor_bytes context_json, int64_t now_seconds,
                                     candor_text* out, candor_error* error);

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

/* Compiles on a thread of its own, under limits: 1 MiB of source, depth 64 (schema) or 256 (regex, grammar), counts of
 * 100 000, 3000 properties of an object, 8 patterns on one string, 8000 lines of grammar, 2 s. Small ones take milliseconds:
 * keep a compiled one, untouched, per distinct source, and fork it for a request. */
candor_status candor_constraint_compile(const candor_tok_env* env, candor_grammar_kind kind, candor_bytes source,
                                        candor_constraint** out, candor_error* error);

/* A copy in the same state, cheap. Copies share caches under a lock and may live on different threads. Null on failure. */
candor_constraint* candor_constraint_fork(const candor_constraint* handle);
void candor_constraint_free(candor_constraint* handle);

/* words: bit i % 32 of words[i / 32] says whether token i may come next; all n_words are written, bits past the vocabulary
 * with 0. n_words >= ceil(n_tokens / 32). End-of-sequence tokens are allowed where the text may end, and only they are
 * once candor_constraint_is_stopped. CANDOR_LIMIT: too much work at this point; the constraint is then stopped for good. */
candor_status candor_constraint_mask(candor_constraint* handle, uint32_t* words, size_t n_words, candor_error* error);

/* Advances by one token. CANDOR_INVALID, with nothing changed, when the token is not allowed here. */
candor_status candor_constraint_accept(candor_constraint* handle, uint32_t token, candor_error* error);

/* *n_valid: how many of the tokens are allowed one after another from here. The state does not change. */
candor_status candor_constraint_validate(candor_constraint* handle, const uint32_t* tokens, size_t n_tokens,
                                         size_t* n_valid, candor_error* error);

/* Takes back the last n accepted tokens. CANDOR_LIMIT, and stopped for good, if fewer were accepted. */
candor_status candor_constraint_rollback(candor_constraint* handle, size_t n_tokens, candor_error* error);

bool candor_constraint_is_accepting(candor_constraint* handle); /* may the text end here? */
bool candor_constraint_is_stopped(const candor_constraint* handle); /* must it? (also after a failure) */

/* "candor_bridge 0.1.0, minijinja 3.0.5, llguidance 1.9.1"; static. */
const char* candor_bridge_version(void);

#ifdef __cplusplus
}
#endif
#endif /* CANDOR_BRIDGE_H_ */
