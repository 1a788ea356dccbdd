"""The explorer as an app in the browser, and as a Space."""
