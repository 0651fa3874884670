SELECT to_regtype('halfvec') IS NOT NULL
