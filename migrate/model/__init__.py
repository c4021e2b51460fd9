"""What other packages share: positions, findings, policies, errors, warnings, texts, the log."""
