"""What all SMs together get of L2 and device memory, and how blocks follow each other: measured."""
