"""Tests of the deliverables: the distributions, the image, the stack, and the Kubernetes jobs."""
