// A campaign as an HTML page: its figures, its coverage over time and by row, and its findings, each with a picture of
// its schedule and a link to its file. The page needs no other file.
//
//   write_file("found/report.html", campaign_report(state, "found"));
#pragma once

#include <string>

#include "fuzz/campaign/campaign.h"

namespace fusebox::fuzz {

// `folder`: where the page will be. Reads each finding's file in a process of its own. A finding that cannot be drawn
// has no picture.
std::string campaign_report(const CampaignState& state, const std::string& folder);

// An <svg> chart of the covered rows over time, with marks for findings. (report_chart.cc)
std::string coverage_chart(const std::vector<CampaignSample>& series, uint64_t rows);

}  // namespace fusebox::fuzz
