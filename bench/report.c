/* report.c - see report.h. */
#include "report.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void report_begin(struct report *report)
{
    *report = (struct report){0};
    report->json = open_memstream(&report->json_text, &report->json_size);
    if (!report->json)
        die("out of memory");
}

/* Begins an object in the list of results. All texts in it are ours, and need no escapes. */
static void begin_result(struct report *report, const char *kind, const char *scenario, const char *label)
{
    fprintf(report->json, "%s\n    {\"kind\": \"%s\", \"scenario\": \"%s\", \"case\": \"%s\"", report->any ? "," : "", kind,
            scenario, label);
    report->any = true;
}

static void json_number(FILE *file, double value, bool known)
{
    if (known)
        fprintf(file, "%.4f", value);
    else
        fputs("null", file);
}

static double us(struct samples *samples, int permille)
{
    return (double)samples_at(samples, permille) / 1000;
}

static void json_latencies(struct report *report, struct samples *samples)
{
    fprintf(report->json,
            "\"count\": %zu, \"p50_us\": %.3f, \"p90_us\": %.3f, \"p99_us\": %.3f, \"p999_us\": %.3f, \"max_us\": %.3f",
            samples->count, us(samples, 500), us(samples, 900), us(samples, 990), us(samples, 999), us(samples, 1000));
}

static void print_latencies(struct samples *samples)
{
    printf("%9.2f %9.2f %9.2f %9.2f", us(samples, 500), us(samples, 900), us(samples, 990), us(samples, 999));
}

static void report_variant(struct report *report, struct variant *variant)
{
    struct samples *latencies = variant_latencies(variant);
    double rate = (double)variant->cycles * 1e9 / (double)variant->wall_ns;
    double cpu = (double)variant->cpu_ns / (double)variant->cycles / 1000;
    printf("  %-28s %9.0f ", variant->name, rate);
    print_latencies(latencies);
    printf(" %8.2f", cpu);
    if (variant->calls > 0)
        printf(" %7.2f", variant->calls);
    putchar('\n');
    fprintf(report->json, "{\"name\": \"%s\", \"cycles_per_s\": %.1f, ", variant->name, rate);
    json_latencies(report, latencies);
    fprintf(report->json, ", \"cpu_us\": %.3f, \"system_calls\": ", cpu);
    json_number(report->json, variant->calls, variant->calls > 0);
    fputc('}', report->json);
}

void report_comparison(struct report *report, struct comparison *comparison)
{
    printf("\n%-30s %9s %9s %9s %9s %9s %8s %7s\n", comparison->label, "cycles/s", "p50 us", "p90", "p99", "p99.9", "cpu us",
           "calls");
    begin_result(report, "comparison", comparison->scenario, comparison->label);
    fprintf(report->json, ", \"repetitions\": %ld, \"variants\": [", comparison->repetitions);
    for (int i = 0; i < comparison->count; i++) {
        fputs(i ? ",\n      " : "\n      ", report->json);
        report_variant(report, &comparison->variants[i]);
    }
    fputs("]}", report->json);
    fflush(stdout);
}

void report_ratio(struct report *report, const struct comparison *comparison, const char *name, struct spread spread)
{
    printf("  %-58s min %6.3f  median %6.3f  max %6.3f\n", name, spread.min, spread.median, spread.max);
    fflush(stdout);
    begin_result(report, "ratio", comparison->scenario, comparison->label);
    fprintf(report->json, ", \"name\": \"%s\", \"min\": %.4f, \"median\": %.4f, \"max\": %.4f}", name, spread.min, spread.median,
            spread.max);
}

void report_figure(struct report *report, const char *scenario, const char *label, const char *name, double value, const char *unit)
{
    printf("  %-28s %-28s %12.2f %s\n", label, name, value, unit);
    fflush(stdout);
    begin_result(report, "figure", scenario, label);
    fprintf(report->json, ", \"name\": \"%s\", \"value\": %.4f, \"unit\": \"%s\"}", name, value, unit);
}

void report_latencies(struct report *report, const char *scenario, const char *label, const char *name, struct samples *samples)
{
    if (!samples->count)
        return;
    printf("  %-28s %-28s p50, p90, p99, p99.9 us ", label, name);
    print_latencies(samples);
    putchar('\n');
    fflush(stdout);
    begin_result(report, "latencies", scenario, label);
    fprintf(report->json, ", \"name\": \"%s\", ", name);
    json_latencies(report, samples);
    fputc('}', report->json);
}

void report_skip(struct report *report, const char *scenario, const char *reason)
{
    printf("\n%s: skipped: %s\n", scenario, reason);
    begin_result(report, "skipped", scenario, "");
    fprintf(report->json, ", \"reason\": \"%s\"}", reason);
}

/* ---- Goals ------------------------------------------------------------------------------------------------------------------- */

void report_goal(struct report *report, const char *id, enum relation relation, double goal, double gate, double measured,
                 const char *format, ...)
{
    va_list args;
    if (report->goal_count == MAX_GOALS)
        die("too many goals");
    struct goal *entry = &report->goals[report->goal_count];
    *entry = (struct goal){
        .id = id, .order = report->goal_count++, .relation = relation, .goal = goal, .gate = gate, .measured = measured};
    va_start(args, format);
    vsnprintf(entry->what, sizeof entry->what, format, args);
    va_end(args);
}

/* What is no number holds nowhere. */
static bool holds(const struct goal *goal, double limit)
{
    return goal->relation == AT_MOST ? goal->measured <= limit : goal->measured >= limit;
}

static bool gate_missed(const struct goal *goal)
{
    return goal->gate != NO_GATE && !holds(goal, goal->gate);
}

static int by_id(const void *a, const void *b)
{
    const struct goal *x = a, *y = b;
    int numbers = atoi(x->id + 1) - atoi(y->id + 1);
    return numbers ? numbers : x->order - y->order;
}

/* Returns whether all gates hold. */
static bool print_goals(const struct report *report)
{
    bool kept = true;
    puts(report->goal_count ? "\ngoals" : "");
    for (int i = 0; i < report->goal_count; i++) {
        const struct goal *goal = &report->goals[i];
        char gate[32] = "";
        if (goal->gate != NO_GATE)
            snprintf(gate, sizeof gate, "(gate %g)", goal->gate);
        printf("%-4s %-72s %s %-6g %-12s %10.3f  %s%s\n", goal->id, goal->what, goal->relation == AT_MOST ? "<=" : ">=", goal->goal,
               gate, goal->measured, holds(goal, goal->goal) ? "met" : "short", gate_missed(goal) ? "  GATE MISSED" : "");
        kept = kept && !gate_missed(goal);
    }
    return kept;
}

static void json_goal(FILE *file, const struct goal *goal)
{
    fprintf(file, "{\"id\": \"%s\", \"what\": \"%s\", \"relation\": \"%s\", \"goal\": %g, \"gate\": ", goal->id, goal->what,
            goal->relation == AT_MOST ? "at most" : "at least", goal->goal);
    json_number(file, goal->gate, goal->gate != NO_GATE);
    fprintf(file, ", \"measured\": %.4f, \"met\": %s, \"gate_missed\": %s}", goal->measured,
            holds(goal, goal->goal) ? "true" : "false", gate_missed(goal) ? "true" : "false");
}

static void write_json(const struct report *report, const char *path, const struct effort *effort)
{
    FILE *file = fopen(path, "w");
    if (!file)
        die("cannot write %s", path);
    fprintf(file,
            "{\n  \"schema\": 1,\n  \"library\": \"%s\",\n  \"repetitions\": %ld,\n  \"slices\": %ld,\n  \"results\": [%s\n  ],\n",
            rl_version(), effort->repetitions, effort->slices, report->json_text);
    fputs("  \"goals\": [", file);
    for (int i = 0; i < report->goal_count; i++) {
        fputs(i ? ",\n    " : "\n    ", file);
        json_goal(file, &report->goals[i]);
    }
    fputs("\n  ]\n}\n", file);
    if (fclose(file))
        die("cannot write %s", path);
}

bool report_end(struct report *report, const char *path, const struct effort *effort)
{
    fclose(report->json);
    qsort(report->goals, (size_t)report->goal_count, sizeof *report->goals, by_id);
    if (path)
        write_json(report, path, effort);
    bool kept = print_goals(report);
    free(report->json_text);
    return kept;
}
