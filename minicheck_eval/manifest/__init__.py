"""What is known of a judge before a single weight is loaded: its manifest.toml, or the shape of a model folder."""

from minicheck_eval.manifest.located import Located, judge_names, load_manifest, models_folder
from minicheck_eval.manifest.model_folder import is_general
from minicheck_eval.manifest.schema import Base, Hub, Manifest

__all__ = ["Base", "Hub", "Located", "Manifest", "is_general", "judge_names", "load_manifest", "models_folder"]
