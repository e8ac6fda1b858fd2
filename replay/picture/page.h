// The page that to_html fills in: page.html, compiled in as text. `{{style}}` stands for the part of that name.
#pragma once

#include <string_view>

namespace fusebox::picture {

std::string_view page_template();

}  // namespace fusebox::picture
