"""The explorer as a Space."""

from hf_mech.cli.explorer.app import launch, make_app

if __name__ == "__main__":
    launch(make_app(), host="0.0.0.0")  # at $GRADIO_SERVER_PORT, by default 7860
