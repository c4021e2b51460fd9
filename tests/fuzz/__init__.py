"""Coverage-guided fuzzing of every parser of the decoder: ``python -m tests.fuzz`` (``make fuzz``).

targets   the fuzzed parsers, and the layout of each parser's input
keyed     the fuzzed parsers of keyed state, and their seeds
corpus    the seeds (every payload inside the golden checkpoints), and their hash
encoded   seeds in formats that are rare or missing in the golden checkpoints
child     runs one target under atheris, in a separate process
runner    runs targets, parses libFuzzer's log, and formats the results as a table
crashes/  inputs that once raised an exception other than DecodeError; every test run replays them
"""
