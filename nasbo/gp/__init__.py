"""Parts of Gaussian process models: kernels, priors, conditioning, MAP fit and features."""
