"""What runs on a node. Python 3.6 and the standard library only; sent as source, see probe/bundle.py.

Annotations that 3.6 could not evaluate stand in quotes. Modules import each other by their full name, which
the loader provides on the node as well.
"""
