"""The reliability campaigns: faults under load, histories of what clients saw, and a checker that judges them."""
