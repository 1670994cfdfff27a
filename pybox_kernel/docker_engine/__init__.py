"""The Docker engine behind the ``Engine`` protocol: the only place that knows the docker SDK."""
