"""What is handed out: the distributions, the image, the stack, the Kubernetes jobs."""
