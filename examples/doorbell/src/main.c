/* Waits for the device's button in straight-line code, and tells the house. */
#include <tenure.h>

TENURE_EXPORT(entry) {
    int error = tenure_subscribe("device.button", TENURE_DROP_OLDEST, 8, NULL);
    if (error < 0) {
        tenure_error("can't hear the button: %s", tenure_error_text(error));
        return;
    }
    struct tenure_event event;
    for (unsigned rung = 0; tenure_event_next(&event, TENURE_FOR_EVER) == 0;) {
        if (strcmp(event.payload, "pressed") == 0) {
            rung++;
            char text[16];
            snprintf(text, sizeof text, "%u", rung);
            int heard = tenure_publish_text("house.doorbell", text);
            tenure_info("rung %s times, heard by %d", text, heard);
        }
        free(event.payload);
    }
}
