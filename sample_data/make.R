# Writes all tables but messy.csv into the current folder:
#
#     cd sample_data && Rscript make.R
#
# Needs R and its packages survival and lme4 (Debian: r-base-core, r-cran-survival, r-cran-lme4).

library(survival)
data(VerbAgg, cbpp, package = "lme4")

# As write.csv leaves them: text in quotes, gaps as NA.
write.csv(pbc, "pbc.csv", row.names = FALSE)
write.csv(lung, "lung.csv", row.names = FALSE)

# The other habit: nothing in quotes, gaps left empty.
write.csv(datasets::airquality, "airquality.csv", row.names = FALSE, quote = FALSE, na = "")

# Triplets, and what is known of persons and items beforehand.
plain <- function(table, file) write.csv(table, file, row.names = FALSE, quote = FALSE)
known <- function(by, columns) {
  once <- VerbAgg[!duplicated(VerbAgg[[by]]), c(by, columns)]
  once[order(as.integer(once[[by]])), ]
}
plain(VerbAgg[c("id", "item", "resp")], "verbal_aggression.csv")
plain(known("id", c("Anger", "Gender")), "verbal_aggression_persons.csv")
plain(known("item", c("btype", "situ", "mode")), "verbal_aggression_items.csv")
plain(cbpp[c("herd", "period", "incidence", "size")], "cbpp.csv")
