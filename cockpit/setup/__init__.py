"""Setting a cluster up: what there is to be found, the entry for the config, and its writing."""
