// Keeps what the thermometer says, and compares it with the thermostat.
#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include <tenure.h>

namespace {

constexpr size_t readings_max = 4;

/* What an SDK's function has allocated, as a string. */
std::optional<std::string> taken(char *text) {
    std::unique_ptr<char, decltype(&free)> owned(text, free);
    return text ? std::optional<std::string>(text) : std::nullopt;
}

std::optional<std::string> value(const char *path) {
    return taken(tenure_tree_get(path, nullptr));
}

/* Writes a text if it isn't there already. */
void keep(const char *path, const std::string &text) {
    if (value(path) != text) {
        tenure_tree_set_text(path, text.c_str());
    }
}

std::deque<std::string> words(const std::string &text) {
    std::deque<std::string> found;
    for (size_t start = 0; start < text.size();) {
        const size_t end = std::min(text.find(' ', start), text.size());
        found.push_back(text.substr(start, end - start));
        start = end + 1;
    }
    return found;
}

/* "21.5" as tenths of a degree. */
int tenths(std::string text) {
    text.erase(std::remove(text.begin(), text.end(), '.'), text.end());
    return atoi(text.c_str());
}

} // namespace

TENURE_EXPORT(entry) {
    tenure_subscribe("device.temperature", TENURE_LATEST_ONLY, 1, "on_temperature");
    tenure_every(1000, "on_compare");
}

// tenure call weather report
TENURE_EXPORT(report) {
    const auto history = value("history");
    const std::string text =
        history ? *history + ": " + value("verdict").value_or("not compared yet") : "no reading yet";
    tenure_reply_text(text.c_str());
}

// The thermometer's reading comes as a call. One like the last is no news.
TENURE_EXPORT(on_temperature) {
    const std::string degrees = taken(tenure_parameter(nullptr)).value_or("");
    auto readings = words(value("history").value_or(""));
    if (!readings.empty() && readings.back() == degrees) {
        return;
    }
    readings.push_back(degrees);
    std::string text;
    for (size_t at = readings.size() - std::min(readings.size(), readings_max); at < readings.size(); at++) {
        text += (text.empty() ? "" : " ") + readings[at];
    }
    keep("history", text);
}

// The timer's call.
TENURE_EXPORT(on_compare) {
    const auto readings = words(value("history").value_or(""));
    const auto target = taken(tenure_call_text("thermostat", "read", nullptr).value);
    if (readings.empty() || !target) {
        return;
    }
    const bool is_colder = tenths(readings.back()) < tenths(*target);
    keep("verdict", (is_colder ? "colder than " : "warmer than ") + *target);
}
