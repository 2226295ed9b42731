"""PageRank over the parts of a graph, on several devices or hosts: `algorithms.pagerank` has the methods on one device."""
