// A campaign as a page: its figures, its coverage over time and by rows, and its findings, each with a picture of its
// schedule and a link to its file. One file that asks for nothing else.
//
//   write_file("found/report.html", campaign_report(state, "found"));
#pragma once

#include <string>

#include "fuzz/campaign/campaign.h"

namespace fusebox::fuzz {

// `folder`: where the page will lie. Reads the findings' files, each in a process of its own; what cannot be drawn goes
// without a picture.
std::string campaign_report(const CampaignState& state, const std::string& folder);

// The line of covered rows over the seconds, with a mark where something was found, as an <svg>. (report_chart.cc)
std::string coverage_chart(const std::vector<CampaignSample>& series, uint64_t rows);

}  // namespace fusebox::fuzz
