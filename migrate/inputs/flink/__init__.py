"""What a checkpoint tells: Kafka sources with their positions, findings, what lies beside it."""
