"""The models as estimators of scikit-learn, which is not needed to use them."""

from glfm_cli.estimators.classifier import GlfmClassifier
from glfm_cli.estimators.factorizer import GlfmFactorizer
from glfm_cli.estimators.imputer import GlfmImputer
