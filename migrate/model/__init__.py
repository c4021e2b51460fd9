"""Types and functions shared by the other packages: positions, findings, policies, errors, log."""
