# Writes pbc.csv, lung.csv and airquality.csv into the current folder:
#
#     cd sample_data && Rscript make.R
#
# Needs R and its survival package (Debian: r-base-core, r-cran-survival).

library(survival)

# As write.csv leaves them: text in quotes, gaps as NA.
write.csv(pbc, "pbc.csv", row.names = FALSE)
write.csv(lung, "lung.csv", row.names = FALSE)

# The other habit: nothing in quotes, gaps left empty.
write.csv(datasets::airquality, "airquality.csv", row.names = FALSE, quote = FALSE, na = "")
