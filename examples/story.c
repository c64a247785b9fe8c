/* What a user of the C interface writes: story MODEL TEXT */
#include <candor/candor.h>
#include <stdio.h>
#include <string.h>

static int failed(candor_error error) {
  fprintf(stderr, "%s\n", candor_error_message(error));
  candor_close(error);
  return 1;
}

int main(int argc, char** argv) {
  candor_error error;
  candor_engine engine;
  candor_request request;
  candor_run run;
  candor_event event;
  candor_status status;
  if (argc != 3) return fprintf(stderr, "usage: %s MODEL TEXT\n", argv[0]), 2;
  if (candor_open(argv[1], 0, &engine, &error) != CANDOR_OK) return failed(error);
  if (candor_request_new(&request, &error) != CANDOR_OK ||
      candor_prompt_text(request, argv[2], strlen(argv[2]), &error) != CANDOR_OK ||
      candor_set(request, "temperature", "0.7", &error) != CANDOR_OK ||
      candor_set(request, "seed", "1", &error) != CANDOR_OK ||
      candor_set(request, "max_tokens", "60", &error) != CANDOR_OK ||
      candor_start(engine, request, &run, &error) != CANDOR_OK) {
    return failed(error);
  }
  printf("%s", argv[2]);
  event.size = sizeof event;
  while ((status = candor_next(run, &event, -1, &error)) == CANDOR_OK) {
    printf("%s", event.text);
    fflush(stdout);
  }
  if (status != CANDOR_END) return failed(error);
  printf("\n");
  candor_close(run);
  candor_close(request);
  candor_close(engine);
  return 0;
}
