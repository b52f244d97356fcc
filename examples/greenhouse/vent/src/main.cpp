/* Opens the window by the mean of the last readings, so that one gust of wind doesn't close it. */
#include <tenure.h>

/* The mean of the last N values. */
template <int N> class Mean {
  public:
    void add(int value) {
        sum += value - values[next];
        values[next] = value;
        next = (next + 1) % N;
        count += count < N;
    }
    int mean() const { return count ? sum / count : 0; }
    bool is_empty() const { return count == 0; }

  private:
    int values[N] = {};
    int next = 0, count = 0, sum = 0;
};

/* Globals are made once, before the first function, and live from call to call. */
static Mean<4> degrees;
static bool is_open = false;

TENURE_EXPORT(entry) {
    int error = tenure_subscribe("device.air", TENURE_LATEST_ONLY, 1, "on_air");
    if (error < 0) tenure_fail("can't hear the thermometer: %s", tenure_error_text(error));
}

TENURE_EXPORT(on_air) {
    char *reading = tenure_parameter(nullptr);
    char *limit = tenure_tree_get("open_above", nullptr);
    if (reading) degrees.add(atoi(reading));
    const bool open = !degrees.is_empty() && degrees.mean() > (limit ? atoi(limit) : 25);
    free(reading);
    free(limit);
    if (open == is_open) return;
    is_open = open;
    tenure_info("%d degrees: window %s", degrees.mean(), open ? "open" : "shut");
    int error = tenure_publish_text("command.window", open ? "on" : "off");
    if (error < 0) tenure_fail("can't move the window: %s", tenure_error_text(error));
}

/* tenure call vent read */
TENURE_EXPORT(read) {
    char text[48];
    snprintf(text, sizeof text, "%d degrees, window %s", degrees.mean(), is_open ? "open" : "shut");
    tenure_reply_text(text);
}
