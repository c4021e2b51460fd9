"""Which faults in the code the fast tests would not see: faults are put in, one at a time.

``make mutants`` samples them; CONTRIBUTING.md says what came of it.
"""
