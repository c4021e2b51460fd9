"""Values that every other package uses: positions, findings, policies, errors."""
