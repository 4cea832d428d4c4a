/* What --help prints: examples first. docs/modefold.1.in says the same at length. */
#include <stddef.h>
#include <string.h>

#include "commands.h"

static const char general[] =
    "modefold folds tensors: reductions, broadcasts, contractions and windows, in one call\n"
    "\n"
    "  modefold run 'ij->i' 'sum(a)' x.npy                       the sum of every row\n"
    "  modefold run 'nchw->c' 'mean(a); var(a)' x.npy            two results in one pass\n"
    "  modefold run '(2h+i)(2w+j)c->hwc' 'max(a)' in.png -o out.png --set i=2,j=2\n"
    "  modefold plan 'ij,j->ij' 'a+b' a=f32[1000,20] b=f32[20]   what would run, and why\n"
    "  modefold demo                                             what it can do, checked and timed\n"
    "\n"
    "  run      folds files (.npy, PNG, JPEG) into files or text\n"
    "  plan     says what would run, and why\n"
    "  verify   compares every solver with the reference, bit for bit\n"
    "  bench    measures, beside the limit of the machine\n"
    "  demo     ten folds of large arrays, each checked against plain loops\n"
    "  info     what this build has: types, reducers, maps, solvers, instruction sets, GPUs\n"
    "  warm     compiles kernels for CUDA devices that are elsewhere\n"
    "  match    finds the nearest rows of bit strings (.npy) by Hamming distance\n"
    "  detect   finds things in pictures with a network of darknet's\n"
    "\n"
    "  modefold SUBCOMMAND --help    examples and options of a subcommand\n"
    "  modefold --version\n"
    "  man modefold                  modes and expressions in full\n";

static const char run[] =
    "modefold run MODES EXPRESSION INPUT... [options]\n"
    "\n"
    "  modefold run 'ij->i' 'sum(a)' x.npy                     print the sums of the rows\n"
    "  modefold run 'ij->j' 'mean(a); max(a)' x.npy            two results in one pass\n"
    "  modefold run 'ij,j->ij' 'a-b' x.npy mean.npy -o y.npy   broadcast, into a file\n"
    "  modefold run 'ik,kj->ij' 'sum(a*b)' a.npy b.npy -o c.npy --dtype f32\n"
    "  modefold run '(i+j)->i' 'mean(a)' x.npy --set j=32      all runs of 32\n"
    "  modefold run '(2h+i)(2w+j)c->hwc' 'max(a)' in.jpg -o half.png --set i=2,j=2\n"
    "  modefold run 'i->' 'sum(a)' raw.npy:bf16                the same bits read as another type\n"
    "\n"
    "  -o, --output FILE   where a result goes, once for each result (.npy; .png for pictures; - is the standard\n"
    "                      output). Without it results are printed. Files appear whole or not at all.\n"
    "  --set i=2,j=2       sizes of modes that occur in windows only\n"
    "  --dtype TYPE        the results' type, or one for each: f32,i64 (default: NumPy's)\n"
    "  --threads N         1 to 256 (default: all cores this process may use)\n"
    "  --solver NAME       this one or none ('modefold info' lists most); some have forms, multi:swap:8\n"
    "  --device NAME       cpu, cpu:N, cuda:N, opencl:N or auto (cuda:0, else cpu)\n"
    "  --order-as-written  number the reduced elements in the order of the modes string, not of memory\n"
    "  --order-contract    log-space products too with the bits that every device gives, one exp a term\n"
    "  --order-free        any order and fused multiply-adds will do, within the bound of docs/numerics.md\n"
    "  --tier NAME         of a log-space product: exact (one exp a term), certified (the default of larger ones)\n"
    "                      or fast (unchecked: may be wrong without a word); --json says what outputs took\n"
    "  --json              shape, type, time, GB/s, solver, and the data of small results, as JSON\n"
    "  --define TEXT       an operation of your own, for instance the last x of x = s x + t, used as affine(a,b):\n"
    "                      'ordered affine(s, t): identity p = 1, q = 0; lift p = s, q = t;\n"
    "                       combine p = p1*p2, q = q1*p2 + q2; finish q'      modefold(1) says more\n"
    "\n"
    "An input is a .npy file (C or Fortran order, either byte order), a PNG or JPEG picture\n"
    "(height x width x channel, u8), or - for the standard input.\n";

static const char plan[] =
    "modefold plan MODES EXPRESSION INPUT... [options]\n"
    "modefold plan MODES EXPRESSION a=TYPE[SHAPE] ... [o=TYPE[SHAPE] ...] [options]\n"
    "modefold plan 'PROBLEM' [options]\n"
    "\n"
    "  modefold plan 'zyx->y' 'sum(a)' a=f32[512,8,4096]\n"
    "  modefold plan 'ij->j' 'max(a)' 'a=f32[100,200]:(1,100)'     strides in elements\n"
    "  modefold plan 'ij->i' 'sum(a)' x.npy --threads 1\n"
    "  modefold plan 'ij->i | sum(a) | a=f32[4,5]'\n"
    "\n"
    "  --set i=2,j=2   --dtype TYPE   --threads N   --solver NAME   --device NAME   --order-as-written\n"
    "  --order-contract   --order-free   --tier NAME   --define TEXT   as for run; --dtype does not go with\n"
    "  outputs that are written out\n";

static const char verify[] =
    "modefold verify [PROBLEM...] [options]\n"
    "\n"
    "  modefold verify --count 100000                          random problems\n"
    "  modefold verify --seconds 60 --seed 7                   as many as fit into a minute\n"
    "  modefold verify --file tests/problems.txt\n"
    "  modefold verify 'ij->i | sum(a) | a=f32[40,50]:(1,40) o=f32[40] | data=special seed=3'\n"
    "\n"
    "  --count N      how many random problems (10,000)\n"
    "  --seed S       which ones (1); the same on every machine\n"
    "  --seconds T    stop after so long\n"
    "  --solver NAME  only this one; \"automatic\" is the library's own choice\n"
    "  --device NAME  cpu, cpu:N, cuda:N or opencl:N (there the library's own choice only, unless --solver says)\n"
    "  --file FILE    problems from a file, one a line; # begins a comment\n"
    "  --define TEXT  an operation of your own, as for run\n"
    "\n"
    "Every solver that applies, and the library's own choice, must give the reference's bits and write\n"
    "nothing else. Log-space products in an order of their own are compared by their bound, and in the contract's\n"
    "order by its bits. Solvers log-certified, log-exact, log-running and log-two-pass of such products, openblas,\n"
    "direct and fused of sum(a*b) are compared by their bound where --solver or a problem names them. A difference is\n"
    "printed as its problem, the element and both values, then made smaller.\n"
    "Exit status 1 if there is one.\n"
    "\n"
    "A problem is MODES | EXPRESSION | a=TYPE[SHAPE] ... o=TYPE[SHAPE] ... | OPTIONS\n"
    "  tensors  :(STRIDES) +OFFSET, in elements; o=f32[8]@a lies in the memory of a; without outputs: the fold's own\n"
    "  options  seed=N data=KIND order=written|contract|memory threads=N solver=NAME define=\"TEXT\";\n"
    "           'modefold info' lists the kinds of data\n";

static const char bench[] =
    "modefold bench [PROBLEM...] [options]\n"
    "\n"
    "  modefold bench                                      every row, float32, 2^25 elements\n"
    "  modefold bench --rows reduce --dtype f32,f64,bf16 --threads 1\n"
    "  modefold bench --rows seg32,nchw.bn --seconds 2\n"
    "  modefold bench 'ij->j | logsumexp(a) | a=f32[4096,4096]'\n"
    "\n"
    "  --rows LIST    all, or some of: reduce, broadcast, operations, turned, windows, calls, names of rows\n"
    "  --dtype LIST   types (f32)\n"
    "  --elements N   of a row's largest operand (2^25)\n"
    "  --bytes N      the same in bytes\n"
    "  --seconds T    for each row (0.5)\n"
    "  --threads N    --solver NAME   --device NAME   --define TEXT   as for run\n"
    "  --limit KIND   same (as many bytes read and as many written), read or copy (as many in all);\n"
    "                 on a GPU only copy; without it there is none\n"
    "  --json\n"
    "\n"
    "Medians after a warm-up. GB/s counts every byte read or written once. The limit is a plain read with\n"
    "the widest vectors; where more than 1 % of the bytes are written, the best plain copy, with a read or\n"
    "fill of what is left over. It is measured in turns with the fold, and the ratio is the median of each\n"
    "pair's. The row of calls shows the time of one mf_fold call.\n"
    "\n"
    "On a GPU a time is that of a batch, 20 ms at least, until the device has done it; caches are not emptied.\n"
    "What its memory can do at best is not measured: there is no ratio. With --limit copy it is the ratio to\n"
    "the library's own copy, the map \"a\". The row of calls shows how often calls can follow each other.\n";

static const char demo[] =
    "modefold demo [--threads N]\n"
    "\n"
    "Ten folds of large arrays, each checked against plain loops, timed beside a plain read or copy of as\n"
    "many bytes, and repeated with every instruction set of this machine: the bits must be the same. Needs\n"
    "1 GB of memory, and less than a minute on two cores. Exit status 1 if anything is wrong.\n";

static const char info[] =
    "modefold info [--device NAME]\n"
    "\n"
    "The version, the device, whether the first GPUs open or why not, instruction sets, types, reducers,\n"
    "maps, solvers, kinds of test data, and the environment variables in force.\n";

static const char warm[] =
    "modefold warm --arch sm_90[,sm_100...] [PROBLEM...] [options]\n"
    "modefold warm --arch sm_90 MODES EXPRESSION a=TYPE[SHAPE] ... [o=TYPE[SHAPE] ...]\n"
    "\n"
    "  modefold warm --arch sm_90                              kernels that most programs begin with\n"
    "  modefold warm --arch sm_80,sm_90 --file problems.txt\n"
    "  modefold warm --arch sm_90 'zyx->y' 'sum(a)' a=f32[512,8,4096]\n"
    "  modefold warm --arch sm_90 'ij->i | sum(a) | a=f32[4096,100]' 'ij->j | max(a) | a=bf16[4096,100]'\n"
    "\n"
    "  --arch LIST    architectures of CUDA, as NVIDIA numbers them\n"
    "  --file FILE    problems from a file, one a line; # begins a comment\n"
    "  --set i=2,j=2  sizes of modes that occur in windows only\n"
    "  --define TEXT  an operation of your own, as for run\n"
    "  --strict       a kernel that spills registers is a failure, and so is a cache that is off\n"
    "\n"
    "Compiles the kernels of these folds with NVRTC, without a GPU, into the folder that programs look into\n"
    "(MODEFOLD_CACHE, else ~/.cache/modefold): a line for each, then a count. A kernel serves folds of other\n"
    "sizes too. Without problems: sums, maxima and other folds of floats, and mf_match of rows of 256, 512\n"
    "and 2048 bits. Exit status 1 if one does not compile.\n";

static const char match[] =
    "modefold match QUERIES TRAIN [options]\n"
    "\n"
    "  modefold match q.npy t.npy                                   print query, nearest row, distance\n"
    "  modefold match q.npy t.npy -o matches.npy --difference 25    where the second is 25 bits farther\n"
    "  modefold match q.npy t.npy -o matches.npy --ratio 0.8 --cross-check\n"
    "  modefold match q.npy t.npy --k 5 --indices i.npy --distances d.npy --device cuda:0\n"
    "\n"
    "  -o, --output FILE   i32 of matches x 3: query, row of TRAIN, distance; those that pass all tests\n"
    "  --indices FILE      i32 of queries x K: the nearest rows, -1 where there are too few\n"
    "  --distances FILE    i32 of queries x K: their distances, 2147483647 where there are too few\n"
    "  --k K               how many nearest rows, 1 to 16 (2)\n"
    "  --difference N      only where the second nearest row is at least N bits farther than the nearest\n"
    "  --ratio R           only where the nearest is nearer than R times the second's distance\n"
    "  --max-distance D    only where the nearest is at most D bits away\n"
    "  --cross-check       only where the query is the nearest one of that row, too\n"
    "  --query-mask FILE   bool or 8-bit, one for each query: 0 takes no part; --train-mask FILE for TRAIN\n"
    "  --threads N         --device NAME   as for run; --solver NAME: popc, multi or tensor, on a GPU\n"
    "  --json              counts, time and comparisons a second, as JSON\n"
    "\n"
    "Rows are of any integer type, a multiple of 32 bits. Of rows at one distance the first one is nearer.\n";
static const char detect[] =
    "modefold detect NET.cfg NET.weights PICTURE... [options]\n"
    "\n"
    "  modefold detect yolov2-tiny-voc.cfg yolov2-tiny-voc.weights dog.jpg --names voc.names -o boxes.png\n"
    "  modefold detect yolov3-tiny.cfg yolov3-tiny.weights *.jpg --json\n"
    "  modefold detect NET.cfg NET.weights dog.jpg --times --backend scalar,openblas,simd\n"
    "\n"
    "  -o, --output FILE  a PNG with the boxes, once for each picture\n"
    "  --names FILE       the classes' names, one a line; else their numbers\n"
    "  --threshold T      scores above it (0.3)\n"
    "  --overlap T        of boxes that overlap by more the best one (0.45, by the course's rules 0.3)\n"
    "  --rules RULES      darknet: of each class' boxes; course: the best class only, boxes of any class\n"
    "  --letterbox        keep the picture's proportions, with grey at its sides; else it is stretched\n"
    "  --backend NAME     scalar, openblas, simd, cublas, cuda or opencl (simd); with --times a list\n"
    "  --precision NAME   f32, f16 (weights and layers' outputs), tf32 (on a GPU, factors on tensor cores) (f32)\n"
    "  --threads N        1 to 256 (all cores this process may use)\n"
    "  --unfused          batch norm, bias and activation as steps of their own\n"
    "  --order-contract   the bits that every device gives, instead of the fastest order\n"
    "  --times            a table of times by kind of layer; --trials N runs of each picture (5)\n"
    "  --json\n"
    "\n"
    "Reads JPEG and PNG, and prints each box's label, score and corners in pixels, best first. A time is that\n"
    "of fitting the picture, the network and finding the boxes; for --times the first run does not count.\n";

static const struct {
    const char *name, *text;
} texts[] = {
    {"run", run},   {"plan", plan}, {"verify", verify}, {"bench", bench},   {"demo", demo},
    {"info", info}, {"warm", warm}, {"match", match},   {"detect", detect},
};

const char *help_text(const char *name)
{
    if (!name)
        return general;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (!strcmp(texts[i].name, name))
            return texts[i].text;
    return NULL;
}
