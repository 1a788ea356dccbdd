"""The explorer: pages in HTML that show a model's mechanism at work, and the app that makes them."""
