"""What the benchmarks of the hot path share: workloads, shapes, engines in processes of their own, tables."""
