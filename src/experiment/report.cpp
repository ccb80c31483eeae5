#include "iclflow/experiment/report.hpp"

#include <cctype>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "report_sections.hpp"

namespace iclflow {
namespace {

using namespace page;

constexpr std::string_view style = R"(
:root { color-scheme: light; }
body { font: 16px/1.5 Georgia, "DejaVu Serif", "Liberation Serif", serif; color: #111; background: #fff;
       max-width: 60rem; margin: 2rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .2rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2rem 0 .5rem; border-bottom: 1px solid #999; }
.version { color: #444; margin-top: 0; }
.verdict { border-left: 4px solid #777; padding: .3rem .8rem; background: #f4f4f4; overflow-wrap: anywhere; }
.verdict.good { border-color: #009E73; }
.verdict.bad { border-color: #D55E00; font-weight: bold; }
.table { overflow-x: auto; margin: .6rem 0 1.2rem; }
table { border-collapse: collapse; min-width: min(100%, 36rem); font-size: .86rem; border-top: 2px solid #111; border-bottom: 2px solid #111;
        font-variant-numeric: tabular-nums; }
caption { text-align: left; font-style: italic; padding-bottom: .3rem; }
th, td { padding: .2rem .8rem .2rem 0; text-align: left; vertical-align: top; overflow-wrap: break-word; }
thead th { border-bottom: 1px solid #111; vertical-align: bottom; }
tbody th { font-weight: normal; }
small { color: #555; }
figure { margin: 1.5rem 0; break-inside: avoid; }
figure svg { display: block; width: min(100%, calc(var(--points) * 2px)); height: auto; }
figcaption { font-size: .9rem; max-width: 48rem; }
pre { font: .8rem/1.4 "DejaVu Sans Mono", "Liberation Mono", monospace; background: #f4f4f4; padding: .7rem;
      overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; }
code { font-family: "DejaVu Sans Mono", "Liberation Mono", monospace; font-size: .88em; }
@media print {
  @page { margin: 18mm; }
  body { font-size: 9.5pt; max-width: none; margin: 0; padding: 0; }
  .table { overflow: visible; }
  table { font-size: 7.5pt; }
  th, td { padding-right: .5rem; }
  tr, .verdict { break-inside: avoid; }
  h2 { break-after: avoid; }
  figure svg { width: min(100%, calc(var(--points) * 1pt)); }
}
)";

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// The <svg> element alone, its ids made unique on the page (gnuplot uses the same ones in every file). Empty when there
// is none.
std::string inline_svg(const std::string& file, const std::string& kind) {
  const std::size_t begin = file.find("<svg");
  const std::size_t end = file.rfind("</svg>");
  if (begin == std::string::npos || end == std::string::npos || end < begin) return "";
  std::string svg = file.substr(begin, end + 6 - begin);
  const std::size_t title = svg.find("<title>Gnuplot</title>");
  if (title != std::string::npos) svg.erase(title, std::string("<title>Gnuplot</title>").size());
  std::string prefix;
  for (const char c : kind) prefix += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '-';
  prefix += "-";
  for (const std::string quote : {"'", "\""}) {
    replace_all(svg, " id=" + quote, " id=" + quote + prefix);
    replace_all(svg, "href=" + quote + "#", "href=" + quote + "#" + prefix);
  }
  replace_all(svg, "url(#", "url(#" + prefix);
  svg.insert(4, " role=\"img\" aria-label=\"" + escaped(kind) + "\"");
  return svg;
}

// Width in points from the viewBox; 0 when there is none.
double svg_width(const std::string& svg) {
  const std::string mark = "viewBox=\"0 0 ";
  const std::size_t at = svg.find(mark);
  return at == std::string::npos ? 0.0 : std::strtod(svg.c_str() + at + mark.size(), nullptr);
}

std::string figure_html(const ReportFigure& figure, std::size_t count) {
  const std::string svg = inline_svg(figure.svg, figure.kind);
  const double width = svg_width(svg);
  std::string text = "<figure style=\"--points: " + std::to_string(width > 0.0 ? width : 480.0) + "\">\n";
  if (!svg.empty()) {
    text += svg + "\n";
  } else {
    text += "<p class=\"verdict bad\">" +
            escaped(figure.problem.empty() ? "This figure does not exist." : figure.problem) + "</p>\n";
  }
  return text + "<figcaption><b>Figure " + std::to_string(count) + ", " + escaped(figure.kind) + ".</b> " +
         escaped(figure.caption) + "</figcaption>\n</figure>\n";
}

std::string figures_section(const Report& report) {
  if (report.figures.empty()) return "";
  std::string text = "<h2>Figures</h2>\n";
  for (std::size_t k = 0; k < report.figures.size(); ++k) text += figure_html(report.figures[k], k + 1);
  return text;
}

// A word for the shell, quoted where it needs to be.
std::string shell_word(const std::string& text) {
  const std::string plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos && text.front() != '-') return text;
  std::string quoted = text;
  replace_all(quoted, "'", "'\\''");
  return "'" + quoted + "'";
}

std::string reproduction_section(const Report& report) {
  std::string text = "<h2>To reproduce</h2>\n<p>With iclflow " + shown(at(report.summary, {"version"})) +
                     " and the experiment below:</p>\n<pre>iclflow " + escaped(report.command) + " " +
                     escaped(shell_word(report.experiment_file)) + "</pre>\n";
  const Json& seeds = at(report.summary, {"seeds"});
  if (seeds.is_array() && !seeds.empty()) text += "<p>Seeds: " + shown(seeds) + ".</p>\n";
  Table table("Versions", {});
  for (const auto& [name, version] : report.versions) table.row({escaped(name), escaped(version)});
  return text + table.html() + "<details><summary>The experiment, every default written out</summary>\n<pre>" +
         escaped(report.experiment) + "</pre></details>\n";
}

std::string conventions(const Json& summary) {
  if (at(summary, {"training"}).is_array()) {
    return "<p>Loss: mean over <i>t</i> of ½ |<i>s</i><sub><i>t</i>+1</sub> − <i>f</i><sub><i>t</i></sub>|², in steps "
           "of training. Numbers in brackets are standard errors of the last digits; – marks what does not "
           "exist.</p>\n";
  }
  const std::string over = at(summary, {"system"}) == "autoregressive"
                               ? "summed over predictions and coordinates of a sequence"
                               : "the target noise-free, summed over tasks";
  return "<p>ℓ = ½ E|ŷ − <i>y</i>|², " + over +
         "; time <i>t</i> is that of "
         "d<i>θ</i>/d<i>t</i> = −∇ℓ (a step of learning rate <i>η</i> is Δ<i>t</i> = <i>η</i>). Indices count from 0. "
         "Numbers in brackets are standard errors of the last digits; – marks what does not exist.</p>\n";
}

}  // namespace

std::string render_report(const Report& report) {
  const std::string title = escaped(report.title.empty() ? "Untitled experiment" : report.title);
  const Json& summary = report.summary;
  std::string page =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
      title + "</title>\n<style>" + std::string(style) + "</style>\n</head>\n<body>\n<h1>" + title +
      "</h1>\n<p class=\"version\">iclflow " + shown(at(summary, {"version"}));
  if (at(summary, {"system"}).is_string()) page += ", system " + shown(at(summary, {"system"}));
  page += "</p>\n" + claim_section(summary) + verdict(summary) + checks_section(summary) + conventions(summary);
  page += problem_section(summary) + prediction_section(summary) + dynamics_section(summary) +
          comparison_section(summary) + final_values_section(summary) + leakage_section(summary) +
          training_section(summary) + evaluation_section(summary) + closures_section(summary);
  return page + figures_section(report) + members_section(report) + reproduction_section(report) + "</body>\n</html>\n";
}

void write_report(const std::filesystem::path& file, const Report& report) {
  std::filesystem::path temporary = file;
  temporary += ".part";
  bool written = false;
  {
    std::ofstream out(temporary, std::ios::binary);
    out << render_report(report);
    out.close();
    written = static_cast<bool>(out);
  }
  std::error_code error;
  if (written) std::filesystem::rename(temporary, file, error);
  if (written && !error) return;
  std::error_code ignored;
  std::filesystem::remove(temporary, ignored);
  throw std::runtime_error("cannot write '" + file.string() + "'" + (error ? ": " + error.message() : ""));
}

}  // namespace iclflow
