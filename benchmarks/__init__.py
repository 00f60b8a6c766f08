"""What measures and what no learner imports: campaigns, validation on hardware, tables of pages."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]  # of the repository
