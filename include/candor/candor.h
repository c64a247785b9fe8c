/* Candor from C99: open a model, ask it, pull what comes.
 *
 * Handles are numbers; 0 is none. Every handle is closed with candor_close(), in any order, at any time, from any thread:
 * a call that has it in hand goes on, later calls get CANDOR_NOT_FOUND, and so does closing it twice. Closing an engine
 * cancels what it has in work.
 * Functions return CANDOR_OK or the kind of an error. `error` may be NULL; otherwise it gets the handle of an error that
 * says more, or 0. NULL for an address is CANDOR_INVALID_INPUT. Nothing throws, exits, or (but candor_on_logits()) calls.
 * Any function may be called from any thread. Calls of one request, run or session take turns.
 * Pointers that functions give belong to the handle that they were asked of, until it is closed; those of an event until
 * the next candor_next() of its run. Texts are UTF-8 and end with a zero byte that no size counts.
 *
 * The ABI grows and does not change within a major version of the library: structs begin with their size, which the
 * caller sets. */
#ifndef CANDOR_CANDOR_H_
#define CANDOR_CANDOR_H_

#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

#define CANDOR_API __attribute__((visibility("default")))
enum { CANDOR_ABI = 0 };
typedef uint64_t candor_handle;
typedef candor_handle candor_error, candor_engine;
typedef candor_handle candor_data;    /* a text, tokens or numbers that a function gave */
typedef candor_handle candor_options; /* how an engine is opened */
typedef candor_handle candor_request; /* what is asked for; may be started any number of times */
typedef candor_handle candor_run, candor_session; /* a request in work; a conversation */

typedef enum candor_status {
  CANDOR_OK = 0,
  CANDOR_INVALID_INPUT = 1,  /* the file, request or option is wrong */
  CANDOR_NOT_FOUND = 2,      /* a named thing does not exist; a handle that is closed or of another kind */
  CANDOR_UNSUPPORTED = 3,    /* understood, and not offered */
  CANDOR_CONTEXT_LENGTH = 4, /* the prompt does not fit the context */
  CANDOR_OVERLOADED = 5,     /* the queue is full: try again later */
  CANDOR_RATE_LIMITED = 6, CANDOR_BUSY = 7,
  CANDOR_OUT_OF_MEMORY = 8, CANDOR_IO = 9, CANDOR_CANCELLED = 10,
  CANDOR_INTERNAL = 11, /* a fault of the library */
  CANDOR_TIMEOUT = 100, /* of candor_next(): nothing came in time */
  CANDOR_END = 101      /* of candor_next(): nothing more comes */
} candor_status;

typedef enum candor_finish {
  CANDOR_GOES_ON = 0,
  CANDOR_STOP_EOS = 1,    /* an end token of the model */
  CANDOR_STOP_ID = 2,     /* a stop_id of the request */
  CANDOR_STOP_STRING = 3, /* a stop of the request */
  CANDOR_LENGTH = 4,      /* max_tokens */
  CANDOR_CONTEXT_FULL = 5, CANDOR_WAS_CANCELLED = 6, CANDOR_DEADLINE = 7,
  CANDOR_FAILED = 8 /* candor_next() has returned the error */
} candor_finish;

typedef struct candor_logprob {
  int32_t token; float logprob; /* natural */
} candor_logprob;

/* One token of one choice. */
typedef struct candor_event {
  size_t size;    /* sizeof(candor_event), set by the caller */
  int32_t choice; /* below the request's n */
  int32_t token;  /* -1 in a last event that no token caused */
  const char* text; /* what may be shown now; often "", sometimes more than the token's */
  size_t text_size;
  candor_finish finish; /* of this choice */
  int32_t stop_index;   /* which stop or stop_id was met; -1: none */
  int32_t has_logprob;  /* with the request's logprobs */
  float logprob;
  const candor_logprob* top; /* the likeliest tokens, best first */
  size_t n_top;
} candor_event;

/* Logits before a token is chosen; [n_logits] may be changed. See candor/logits_hook.h. */
typedef struct candor_row {
  size_t size;              /* sizeof(candor_row) of the library */
  const int32_t* text;      /* prompt and output */
  size_t n_text, n_output;  /* the second of the first */
  float* logits;
  size_t n_logits; int32_t choice;
} candor_row;
/* The library. */
CANDOR_API const char* candor_version(void); /* "0.1.0" */
CANDOR_API int candor_abi(void);             /* CANDOR_ABI of the library that is loaded */
CANDOR_API int candor_numerics(void);        /* answers of two libraries with the same number are the same, bit for bit */

/* Handles of every kind. */
CANDOR_API candor_status candor_close(candor_handle handle);

/* Errors. Of a handle that is none: CANDOR_NOT_FOUND and "". */
CANDOR_API candor_status candor_error_kind(candor_error error);
CANDOR_API const char* candor_error_message(candor_error error); /* one line: the thing, what was seen, what was expected */
CANDOR_API const char* candor_error_field(candor_error error);   /* the option that is to blame, or "" */

/* What a function gave. NULL and a size of 0 where the handle holds something else. size may be NULL. */
CANDOR_API const char* candor_text(candor_data data, size_t* size);
CANDOR_API const int32_t* candor_tokens(candor_data data, size_t* size);
CANDOR_API const float* candor_floats(candor_data data, size_t* size);

/* Options of an engine, or of a request, by name: candor_set(options, "n_ctx", "4096", &error).
 * Of an engine: backend, n_threads, n_ctx, kv_type, kv_bytes, kept_states, max_rows, prefill_rows, max_running,
 * max_queued, quantize, fast_weights, prefix_cache, cache_dir, cache_bytes, speculation (off, ngram, draft, mtp, eagle,
 * auto), draft_path, ngrams_beside; and adapter ("poet=PATH", loaded with the model), of which each call adds one.
 * Of a request: every name of `candor sample --help` (temperature, top_p, ...), and seed, max_tokens, n, logprobs,
 * ignore_eos, explain, receipt, speculate, max_prompt_tokens, on_context_full (stop, crop), beams, length_penalty,
 * preset, priority, deadline_ms, cache_scope, fair_key, add_special, parse_special, add_generation_prompt,
 * continue_final, tools and template_kwargs (JSON); and lists, of which each call adds one: stop, stop_id, bad_word,
 * allowed_token_id, sampler, logit_bias ("42:-1.5"), ban, adapter ("poet", "poet:0.5"). */
CANDOR_API candor_status candor_options_new(candor_options* options, candor_error* error);
CANDOR_API candor_status candor_request_new(candor_request* request, candor_error* error);
CANDOR_API candor_status candor_set(candor_handle options_or_request, const char* name, const char* value,
                                    candor_error* error);

/* Engines. options: 0 for the usual ones. model: a GGUF file, or a folder of safetensors. */
CANDOR_API candor_status candor_open(const char* model, candor_options options, candor_engine* engine,
                                     candor_error* error);
CANDOR_API candor_status candor_info(candor_engine engine, candor_data* json, candor_error* error);
CANDOR_API candor_status candor_metrics(candor_engine engine, candor_data* json, candor_error* error);

/* Adapters (LoRA): PEFT's folders or GGUF files, beside the model, for requests that name them. One that is dropped serves
 * the requests that use it to their end. candor_adapters(): a JSON array of those that are loaded. */
CANDOR_API candor_status candor_load_adapter(candor_engine engine, const char* name, const char* path, double scale,
                                             candor_error* error);
CANDOR_API candor_status candor_drop_adapter(candor_engine engine, const char* name, candor_error* error);
CANDOR_API candor_status candor_adapters(candor_engine engine, candor_data* json, candor_error* error);

/* Text and tokens. add_special: the beginning token, where the model wants one. parse_special: control tokens that are
 * written in the text become their ids. messages: a JSON array of objects with role and content. */
CANDOR_API candor_status candor_tokenize(candor_engine engine, const char* text, size_t size, int add_special,
                                         int parse_special, candor_data* tokens, candor_error* error);
CANDOR_API candor_status candor_detokenize(candor_engine engine, const int32_t* tokens, size_t size, candor_data* text,
                                           candor_error* error);
CANDOR_API candor_status candor_token_bytes(candor_engine engine, int32_t token, candor_data* bytes,
                                            candor_error* error);
CANDOR_API candor_status candor_apply_template(candor_engine engine, const char* messages, candor_data* text,
                                               candor_error* error);

/* What a request continues: the last of these counts. */
CANDOR_API candor_status candor_prompt_text(candor_request request, const char* text, size_t size, candor_error* error);
CANDOR_API candor_status candor_prompt_tokens(candor_request request, const int32_t* tokens, size_t size,
                                              candor_error* error);
CANDOR_API candor_status candor_prompt_messages(candor_request request, const char* messages, candor_error* error);
/* kind: json_schema, json_object, regex, lark, gbnf, or choice (a JSON array of strings); "" for none. */
CANDOR_API candor_status candor_constrain(candor_request request, const char* kind, const char* source,
                                          candor_error* error);
/* hook: called by the engine's thread for each token; other than 0 ends the run with an error. release (may be NULL):
 * called once, when neither the request nor a run of it will call hook any more. */
CANDOR_API candor_status candor_on_logits(candor_request request, int (*hook)(void* user, const candor_row* row),
                                          void* user, void (*release)(void* user), candor_error* error);
/* Runs. candor_next() waits for at most so long (negative: for as long as it takes) and gives CANDOR_OK with an event,
 * CANDOR_TIMEOUT, CANDOR_END behind the last one, or the error that ended the run. Closing a run cancels it. */
CANDOR_API candor_status candor_start(candor_engine engine, candor_request request, candor_run* run,
                                      candor_error* error);
CANDOR_API candor_status candor_next(candor_run run, candor_event* event, int64_t timeout_ms, candor_error* error);
/* For poll() and event loops: readable while there are events to pull. Closed with the run. */
CANDOR_API candor_status candor_run_fd(candor_run run, int* fd, candor_error* error);
CANDOR_API candor_status candor_cancel(candor_run run, candor_error* error);
/* Tokens, times and warnings. Behind the last event. */
CANDOR_API candor_status candor_summary(candor_run run, candor_data* json, candor_error* error);
/* How the token of the last event came about. With the request's explain. */
CANDOR_API candor_status candor_explanation(candor_run run, candor_data* json, candor_error* error);
/* What anyone can check the answers by (docs/receipts.md), behind the last event, with the request's receipt. */
CANDOR_API candor_status candor_receipt(candor_run run, candor_data* json, candor_error* error);
/* Reads the answers again. {"verified": .., "message": .., "difference": ..}; an error where that is no receipt of it. */
CANDOR_API candor_status candor_verify(candor_engine engine, const char* receipt, size_t size, candor_data* json,
                                       candor_error* error);
/* The vector of a text. pooling: model (what its files say), mean, last or cls. */
CANDOR_API candor_status candor_embed(candor_engine engine, const char* text, size_t size, const char* pooling,
                                      candor_data* floats, candor_error* error);
/* {"texts": [..]}, {"pairs": [[.., ..], ..]} or {"tokens": [[..], ..]}, with "pooling" (as above; labels; sparse: text,
 * token, weight) or "rows" (logits, hidden, scores from "first"), "normalize", "truncate", "adapters" ({"poet": 1}). */
CANDOR_API candor_status candor_read(candor_engine engine, const char* json, candor_data* floats, candor_error* error);
/* Of each token from `first` on (1 to size), given those before it: its logprob, and that of the likeliest token there.
   [size - first, 2]. Tokens before `first` may come from the prefix cache. */
CANDOR_API candor_status candor_score_from(candor_engine engine, const int32_t* tokens, size_t size, size_t first,
                                           candor_data* floats, candor_error* error);
/* The logprob of each token behind the first, given those before it. */
CANDOR_API candor_status candor_score(candor_engine engine, const int32_t* tokens, size_t size, candor_data* floats,
                                      candor_error* error);
/* Rows of floats, one for each token: its logits for the next one [size, n_vocab of candor_info()], or its last hidden
 * state, behind the final norm [size, dim]. At most 1 GiB of them. They live as long as the handle of the data does. */
CANDOR_API candor_status candor_logits(candor_engine engine, const int32_t* tokens, size_t size, candor_data* floats,
                                       candor_error* error);
CANDOR_API candor_status candor_hidden(candor_engine engine, const int32_t* tokens, size_t size, candor_data* floats,
                                       candor_error* error);
/* Conversations: what is said, and branches, which go on by themselves from there. What they share is computed once, by
 * the engine's prefix cache. candor_session_start() asks for the next turn, as the request says it otherwise; the answer
 * of its first choice becomes a turn when its last event was pulled. */
CANDOR_API candor_status candor_session_new(candor_engine engine, candor_session* session, candor_error* error);
CANDOR_API candor_status candor_session_say(candor_session session, const char* role, const char* text, size_t size,
                                            candor_error* error);
CANDOR_API candor_status candor_session_branch(candor_session session, candor_session* branch, candor_error* error);
CANDOR_API candor_status candor_session_start(candor_session session, candor_request request, candor_run* run,
                                              candor_error* error);
CANDOR_API candor_status candor_session_messages(candor_session session, candor_data* json, candor_error* error);
#ifdef __cplusplus
}
#endif
#endif
