"""Is the way in open? Every step from the config to a node's GPUs and AWS, each with its remedy. Changes nothing."""
