/* hcu_sass_text.cpp - reads a GPU's machine code: nvdisasm's text of it, and of the cubin what the text does not say,
 * constants, parameters and registers. What it does not know makes its kernel one that is refused. */
#include "hcu_sass.h"
#include <cuda_fp16.h>
#include <cmath>
#include <cstdio>
#include <elf.h>

namespace hcu {
namespace sass {
Map<string, std::unique_ptr<Kernel>> &g_kernels = *new Map<string, std::unique_ptr<Kernel>>;
long g_launches;
int g_arch, g_sms, g_partial, g_grids;

namespace {
int g_file;

/* ---- nvdisasm's text --------------------------------------------------------------------------------------------- */

struct Parser {
    Kernel *k = nullptr;
    Map<string, int> labels; /* of the section */
    string refuse;

    static bool starts(const string &s, const char *with) { return s.compare(0, strlen(with), with) == 0; }
    static string strip(const string &s) {
        size_t a = s.find_first_not_of(" \t"), b = s.find_last_not_of(" \t");
        return a == string::npos ? "" : s.substr(a, b - a + 1);
    }
    static bool number_after(const string &s, const char *prefix, int zero, int *out) {
        size_t n = strlen(prefix);
        if (!starts(s, prefix)) return false;
        string rest = s.substr(n);
        if (rest == "Z") return *out = zero, true;
        if (rest == "T") return *out = kTrue, true;
        if (rest.empty() || rest.find_first_not_of("0123456789") != string::npos) return false;
        return *out = atoi(rest.c_str()), true;
    }
    bool wants_float(const Ins &i) const {
        switch (i.code) {
        case C_FADD:
        case C_FMUL:
        case C_FFMA:
        case C_FSEL:
        case C_FSETP:
        case C_FMNMX:
        case C_FMNMX3:
        case C_FCHK:
        case C_MUFU:
        case C_F2FP:
        case C_F2F:
        case C_F2I:
        case C_FRND: return !i.has(MOD_F64) || i.code == C_F2F;
        default: return false;
        }
    }
    bool wants_double(const Ins &i) const {
        return i.code == C_DADD || i.code == C_DMUL || i.code == C_DFMA || i.code == C_DSETP;
    }
    void number(const Ins &i, const string &s, Operand &o) {
        char *end;
        bool hex = s.find("0x") != string::npos, word = s.find("INF") != string::npos || s.find("NAN") != string::npos;
        o.kind = O_NUMBER;
        if (hex) {
            bool minus = s[0] == '-';
            uint64_t v = strtoull(s.c_str() + (minus ? 1 : 0), &end, 16);
            o.bits = minus ? 0 - v : v;
            if (*end) refuse = "number " + s;
            return;
        }
        double x = strtod(s.c_str(), &end);
        if (word) {
            x = s.find("INF") != string::npos ? INFINITY : NAN;
            if (s[0] == '-') x = -x;
            end = const_cast<char *>("");
        }
        if (*end) refuse = "operand " + s;
        if (wants_double(i))
            o.bits = to_bits(x);
        else if (wants_float(i))
            o.bits = std::isnan(x) ? 0x7fffffff : uint32_t(to_bits(float(x)));
        else if (i.code == C_HADD2 || i.code == C_HFMA2)
            o.bits = __half_raw(__double2half(x)).x;
        else
            o.bits = uint64_t(int64_t(x));
    }
    /* R2.64+UR4.64+-0x10, R3.X8+0x4, UR5+0xc */
    void address(const string &s, Operand &o) {
        for (size_t at = 0; at < s.size();) {
            size_t end = s.find('+', at);
            if (end == string::npos) end = s.size();
            string t = strip(s.substr(at, end - at)), base = t.substr(0, t.find('.'));
            string suffix = t.size() > base.size() ? t.substr(base.size() + 1) : "";
            int n;
            at = end + 1;
            if (number_after(base, "R", kZero, &n)) {
                o.index = n;
                if (suffix == "64")
                    o.wide = true;
                else if (suffix == "X4" || suffix == "X8" || suffix == "X16")
                    o.scale = atoi(suffix.c_str() + 1);
                else if (suffix != "" && suffix != "U32")
                    refuse = "address " + s;
            } else if (number_after(base, "UR", kZero, &n)) {
                o.uniform = n;
                o.wide_uniform = suffix == "64";
            } else if (t.find("0x") != string::npos) {
                bool minus = t[0] == '-';
                uint64_t v = strtoull(t.c_str() + (minus ? 1 : 0), nullptr, 16);
                o.bits += minus ? 0 - v : v;
            } else {
                refuse = "address " + s;
            }
        }
    }
    void constant(const string &s, Operand &o) { /* c[0x2][R5+0xc] */
        o.kind = O_CONSTANT;
        o.bank = int(strtol(s.c_str() + 2, nullptr, 16));
        size_t at = s.find("][");
        if (at == string::npos || o.bank > 7) {
            refuse = "constant " + s;
            return;
        }
        address(s.substr(at + 2, s.rfind(']') - at - 2), o);
    }
    void suffixes(string &s, Operand &o) {
        for (size_t dot; (dot = s.rfind('.')) != string::npos;) {
            string t = s.substr(dot + 1);
            if (t == "reuse") {
            } else if (t == "H0_H0" || t == "H0") {
                o.half = 0;
            } else if (t == "H1_H1" || t == "H1") {
                o.half = 1;
            } else if (t.size() == 2 && t[0] == 'B' && t[1] >= '0' && t[1] <= '3') {
                o.byte = t[1] - '0';
            } else if (t == "64") {
                o.wide = true;
            } else {
                refuse = "operand " + s;
            }
            s.resize(dot);
        }
    }
    Operand operand(const Ins &i, string s) {
        Operand o;
        size_t desc = s.find("desc[");
        if (desc == 0) s = s.substr(s.find(']') + 1);
        if (starts(s, "SR")) {
            o.kind = O_SPECIAL;
            o.text = s;
            return o;
        }
        if (starts(s, "`(")) {
            o.kind = O_LABEL;
            o.text = s.substr(2, s.size() - 3);
            return o;
        }
        if (s[0] == '[') {
            o.kind = O_ADDRESS;
            address(s.substr(1, s.find(']') - 1), o);
            return o;
        }
        if ((s[0] >= '0' && s[0] <= '9') ||
            ((s[0] == '-' || s[0] == '+') && ((s[1] >= '0' && s[1] <= '9') || s[1] == 'I' || s[1] == 'Q'))) {
            number(i, s, o);
            return o;
        }
        if (s[0] == '-') o.negated = true;
        if (s[0] == '~' || s[0] == '!') o.inverted = true;
        if (o.negated || o.inverted) s = s.substr(1);
        if (s[0] == '|') {
            o.absolute = true;
            s = s.substr(1, s.rfind('|') - 1);
        }
        if (starts(s, "c[")) {
            size_t end = s.rfind(']');
            string tail = s.substr(end + 1);
            suffixes(tail, o);
            constant(s.substr(0, end + 1), o);
            return o;
        }
        suffixes(s, o);
        if (s == "PR" || s == "UPR") {
            o.kind = O_ALL_PREDICATES;
        } else if (number_after(s, "R", kZero, &o.index)) {
            o.kind = O_REGISTER;
        } else if (number_after(s, "UR", kZero, &o.index)) {
            o.kind = O_UNIFORM;
        } else if (number_after(s, "P", 0, &o.index)) {
            o.kind = O_PREDICATE;
        } else if (number_after(s, "UP", 0, &o.index)) {
            o.kind = O_UNIFORM_PREDICATE;
        } else if (number_after(s, "B", 0, &o.index)) {
            o.kind = O_BARRIER;
        } else {
            refuse = "operand " + s;
        }
        return o;
    }
    bool opcode(const string &word, Ins &i) {
        size_t dot = word.find('.');
        string name = word.substr(0, dot), bare = name[0] == 'U' ? name.substr(1) : name;
        bool found = false, uniform = false;
        for (const string *n : {&name, &bare})
            for (const auto &c : kCodes)
                if (!found && *n == c.name) {
                    i.code = c.code;
                    i.pipe = c.pipe;
                    uniform = n == &bare && name != bare;
                    found = true;
                }
        if (uniform) i.pipe = HCU_PIPE_UNIFORM;
        while (found && dot != string::npos) {
            size_t next = word.find('.', dot + 1);
            string m = word.substr(dot + 1, next == string::npos ? next : next - dot - 1);
            int n = 0;
            while (n < MOD_COUNT && m != kModifiers[n])
                n++;
            if (n == MOD_COUNT) return false;
            i.modifiers[n / 64] |= uint64_t(1) << (n % 64);
            dot = next;
        }
        bool converts = i.code == C_F2F || i.code == C_I2F || i.code == C_F2I;
        if (converts && i.has(MOD_F64)) i.pipe = HCU_PIPE_CVT64;
        return found;
    }
    void line(size_t address, string s) {
        Ins i{};
        i.text = s;
        refuse.clear();
        if (address != 16 * k->code.size()) refuse = "address out of order";
        if (s[0] == '@') {
            size_t end = s.find(' ');
            Operand g = operand(i, s.substr(1, end - 1));
            i.guard = g.index;
            i.guard_uniform = g.kind == O_UNIFORM_PREDICATE;
            i.guard_inverted = g.inverted;
            s = strip(s.substr(end));
        }
        size_t end = s.find(' ');
        string rest = end == string::npos ? "" : strip(s.substr(end));
        size_t note = rest.find("(*");
        if (note != string::npos) rest = strip(rest.substr(0, note));
        if (!opcode(s.substr(0, end), i)) refuse = "instruction " + s.substr(0, end);
        if (i.code == C_BRX || i.code == C_BRXU || i.code == C_RET) /* R4 -0x1a90; R4 `(label) */
            for (char &c : rest)
                if (c == ' ') c = ',';
        for (size_t at = 0; at < rest.size() && refuse.empty();) {
            size_t comma = rest.find(',', at);
            if (comma == string::npos) comma = rest.size();
            i.o.push_back(operand(i, strip(rest.substr(at, comma - at))));
            at = comma + 1;
        }
        if (!refuse.empty() && k->unsupported.empty()) k->unsupported = refuse + " in \"" + i.text + "\"";
        k->code.push_back(std::move(i));
    }
    void finish() {
        if (!k) return;
        k->issued.assign(k->code.size(), 0);
        for (Ins &i : k->code)
            for (Operand &o : i.o) {
                int *at = o.kind == O_LABEL ? labels.get(o.text) : nullptr;
                if (at)
                    o.target = *at;
                else if (o.kind == O_LABEL && k->unsupported.empty())
                    k->unsupported = "label " + o.text;
            }
        k = nullptr;
    }
    void run(const string &text) {
        static const char section[] = "\t.section\t.text.";
        for (size_t at = 0; at < text.size();) {
            size_t end = text.find('\n', at);
            if (end == string::npos) end = text.size();
            string s = text.substr(at, end - at);
            at = end + 1;
            if (starts(s, "\t.section\t")) finish();
            if (starts(s, "\t.target\tsm_")) g_arch = atoi(s.c_str() + 12);
            if (starts(s, section)) {
                string name = s.substr(sizeof section - 1, s.find(',') - sizeof section + 1);
                if (name[0] == '"') name = name.substr(1, name.size() - 2);
                labels = Map<string, int>();
                auto *entry = g_kernels.get(name);
                k = entry ? entry->get() : nullptr;
            }
            if (!k) continue;
            size_t open = s.find("/*");
            if (!s.empty() && s[0] != ' ' && s[0] != '\t' && s.back() == ':')
                labels[s.substr(0, s.size() - 1)] = int(k->code.size());
            if (s.empty() || s[0] != ' ' || open == string::npos) continue;
            size_t close = s.find("*/", open), semicolon = s.rfind(';');
            if (close == string::npos || semicolon == string::npos || semicolon < close) continue;
            line(strtoul(s.c_str() + open + 2, nullptr, 16), strip(s.substr(close + 2, semicolon - close - 2)));
        }
        finish();
    }
};

/* ---- the cubin: what the text does not say ----------------------------------------------------------------------- */

void read_info(Kernel &k, const char *p, const char *end) { /* attributes: format, which, size or value, data */
    enum { FORMAT_DATA = 4, KPARAM_INFO = 0x17, PARAM_CBANK = 0x0a };
    while (p + 4 <= end) {
        uint16_t size, offset, ordinal;
        uint32_t word;
        memcpy(&size, p + 2, 2);
        if (p[0] != FORMAT_DATA) size = 0;
        if (p[1] == PARAM_CBANK && size >= 8) {
            memcpy(&offset, p + 8, 2);
            k.param_base = offset;
        }
        if (p[1] == KPARAM_INFO && size >= 12) {
            memcpy(&ordinal, p + 8, 2);
            memcpy(&offset, p + 10, 2);
            memcpy(&word, p + 12, 4);
            if (k.params.size() <= ordinal) k.params.resize(size_t(ordinal) + 1);
            k.params[ordinal] = {offset, word >> 18};
        }
        p += 4 + size;
    }
}
/* Registers: of the section's header, or, in newer files, in .nv.info, by number of the symbol. */
void read_registers(const char *p, const char *end, const Elf64_Sym *symbols, const char *names) {
    enum { FORMAT_DATA = 4, REGCOUNT = 0x2f };
    while (p + 4 <= end) {
        uint16_t size;
        uint32_t symbol, count;
        memcpy(&size, p + 2, 2);
        if (p[0] != FORMAT_DATA) size = 0;
        if (p[1] == REGCOUNT && size >= 8) {
            memcpy(&symbol, p + 4, 4);
            memcpy(&count, p + 8, 4);
            auto *entry = g_kernels.get(names + symbols[symbol].st_name);
            if (entry) (*entry)->registers = int(count);
        }
        p += 4 + size;
    }
}
bool read_cubin(const string &file) {
    if (file.size() < sizeof(Elf64_Ehdr) || memcmp(file.data(), ELFMAG, SELFMAG) != 0) return false;
    const Elf64_Ehdr *head = reinterpret_cast<const Elf64_Ehdr *>(file.data());
    const Elf64_Shdr *section = reinterpret_cast<const Elf64_Shdr *>(file.data() + head->e_shoff);
    const char *names = file.data() + section[head->e_shstrndx].sh_offset;
    int symbols = 0;
    for (int pass = 0; pass < 2; pass++) /* kernels first */
        for (int i = 0; i < head->e_shnum; i++) {
            string name = names + section[i].sh_name;
            const char *data = file.data() + section[i].sh_offset, *end = data + section[i].sh_size;
            if (!pass && name.compare(0, 6, ".text.") == 0) {
                g_kernels[name.substr(6)] = std::make_unique<Kernel>();
                g_kernels[name.substr(6)]->name = name.substr(6);
                g_kernels[name.substr(6)]->registers = int(section[i].sh_info >> 24);
                g_kernels[name.substr(6)]->file = g_file;
            }
            if (pass && name.compare(0, 11, ".nv.shared.") == 0) {
                auto *of = g_kernels.get(name.substr(11));
                if (of) (*of)->shared = size_t(section[i].sh_size);
            }
            if (!pass || section[i].sh_type == SHT_NOBITS) continue;
            if (name == ".symtab") symbols = i;
            if (name == ".nv.info" && symbols)
                read_registers(data, end, reinterpret_cast<const Elf64_Sym *>(file.data() + section[symbols].sh_offset),
                    file.data() + section[section[symbols].sh_link].sh_offset);
            for (auto *e : g_kernels.entries) {
                Kernel &k = *e->value;
                if (k.file != g_file) continue;
                if (name == ".nv.info." + k.name) read_info(k, data, end);
                for (int bank = 0; bank < 8; bank++) {
                    string own = ".nv.constant" + std::to_string(bank);
                    if (name == own || name == own + "." + k.name) k.constant[bank].assign(data, end);
                }
            }
        }
    return true;
}

/* ---- files ---- */

bool read_file(const string &path, string &text) {
    FILE *f = fopen(path.c_str(), "rb");
    char buffer[65536];
    if (!f) return perror(path.c_str()), false;
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, f)) > 0;)
        text.append(buffer, n);
    fclose(f);
    return true;
}
/* One file more. */
bool add_code(const string &name) {
    string cubin, text;
    g_file++;
    if (!read_file(name + ".cubin", cubin) || !read_file(name + ".sass", text)) return false;
    if (!read_cubin(cubin)) return fprintf(stderr, "%s.cubin is no cubin\n", name.c_str()), false;
    Parser().run(text);
    return true;
}
} // namespace
} // namespace sass
} // namespace hcu

using namespace hcu::sass;
extern "C" int hcu_sass_load(const char *name) {
    int usable = 0;
    while (!g_kernels.entries.empty())
        g_kernels.erase(string(g_kernels.entries.back()->key));
    for (const char *end = name; *name; name = *end ? end + 1 : end) {
        end = name + strcspn(name, " ");
        if (end != name && !add_code(string(name, end))) return -1;
    }
    for (auto *e : g_kernels.entries) {
        const Kernel &k = *e->value;
        usable += k.unsupported.empty() && !k.code.empty();
        if (!k.unsupported.empty()) fprintf(stderr, "%s: not known: %s\n", k.name.c_str(), k.unsupported.c_str());
    }
    return usable;
}
