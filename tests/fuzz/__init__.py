"""Coverage-guided fuzzing of every parser of the decoder: ``python -m tests.fuzz`` (``make fuzz``).

targets   what is fuzzed: one entry per parser, and how its input is cut out of the fuzzed bytes
keyed     what of it is keyed state, and its seeds
corpus    the seeds: every payload inside the golden checkpoints, and their hash
child     one target under atheris, in a process of its own
runner    runs targets, reads libFuzzer's log, tells it as a table
crashes/  inputs that once raised anything but DecodeError; replayed by every test run
"""
