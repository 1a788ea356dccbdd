"""Pictures of decision transformers: their episodes, their returns, and the attention of their heads."""
