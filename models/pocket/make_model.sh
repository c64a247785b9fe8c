#!/bin/sh
# Reproduces the Pocket models: tokenizer, data, training, export, perplexity.
#   sh models/pocket/make_model.sh WORK_FOLDER
# The work folder keeps tokens and checkpoints; a second call continues there.
set -eu
work=${1:?usage: make_model.sh WORK_FOLDER}
mkdir -p "$work"
work=$(cd "$work" && pwd)
cd "$(dirname "$0")"

# Large tensors stay in the heap instead of being mapped anew in every step.
export MALLOC_MMAP_THRESHOLD_=4294967296 MALLOC_TRIM_THRESHOLD_=17179869184 MALLOC_TOP_PAD_=268435456

python3 train.py --work "$work" --model main --windows "${MAIN_WINDOWS:-29600}"
python3 train.py --work "$work" --model draft --windows "${DRAFT_WINDOWS:-5000}"
python3 export.py --work "$work"  # the head's trainer reads the model's file
python3 train_head.py --work "$work" --windows "${HEAD_WINDOWS:-9200}"
python3 export.py --work "$work"
python3 evaluate.py
