"""Models: learning, vertex programs, dynamic graphs, networkx's backend and papers; only the command line imports them."""
