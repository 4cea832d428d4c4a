#!/bin/sh
# Size limits: a function has at most 70 lines, a file 600, a line 120 characters. Prints the lines of every folder and
# the breaches; exit status 1 when there are any.
#
# A function is what stands between a '{' and a '}' alone in column 0, as clang-format leaves them.
cd "$(dirname "$0")/.." || exit 1
export LC_ALL=C

folders=
for folder in include src cli tests bench examples net match; do
    [ ! -d $folder ] || folders="$folders $folder"
done
# shellcheck disable=SC2046,SC2086
set -- $(find $folders -type f \( -name '*.c' -o -name '*.h' -o -name '*.inc' \) | sort)
[ $# -gt 0 ] || { echo "no sources found"; exit 1; }

awk '
function breach(line, what) {
    printf "%s:%d: %s\n", file, line, what
    breaches++
}
function end_of_file() {
    if (file == "")
        return
    if (lines > 600)
        breach(lines, "the file has " lines " lines, more than 600")
    folder = file
    sub(/\/[^\/]*$/, "", folder)
    if (!(folder in total))
        order[++folders] = folder
    total[folder] += lines
    files[folder]++
}
FNR == 1 {
    end_of_file()
    file = FILENAME
    opened = 0
    name = ""
}
{ lines = FNR }
length($0) > 120 {
    text = $0
    gsub(/[\200-\277]/, "", text) # UTF-8: count first bytes only
    if (length(text) > 120)
        breach(FNR, "the line has " length(text) " characters, more than 120")
}
/^[A-Za-z_].*\(/ && !opened { name = $0 }
/^\{[ \t]*$/ { opened = FNR }
/^\}/ && opened {
    if (FNR - opened + 1 > 70) {
        sub(/\(.*/, "", name)
        sub(/.*[ *]/, "", name)
        breach(opened, "the function " name " has " FNR - opened + 1 " lines, more than 70")
    }
    opened = 0
}
END {
    end_of_file()
    for (i = 1; i <= folders; i++) {
        printf "%7d lines  %3d files  %s\n", total[order[i]], files[order[i]], order[i]
        all += total[order[i]]
    }
    printf "%7d lines in all, %d breaches\n", all, breaches
    exit breaches > 0
}' "$@"
