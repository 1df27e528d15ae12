"""Models by name. Clients live here; reference models live with what they imitate, and are registered from above."""
