"""What a run says about itself: names, records, and where they go (files, TensorBoard, a terminal).

This room knows no tensor library, no process and no law: it is handed plain records and views. It imports core only.

    names.py       the dictionary of metrics, with the names that other tools use for them
    episodes.py    the returns of the last hundred episodes
    sinks.py       metrics.jsonl
    tensorboard.py events/
    bottleneck.py  from shares of time to one sentence
    panel.py       what the terminal shows while a run lasts
    wording.py     numbers and durations as a person reads them
"""
