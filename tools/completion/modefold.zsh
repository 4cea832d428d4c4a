#compdef modefold
# zsh completion for modefold
_modefold() {
    local -a commands types solvers
    commands=(
        'run:fold files into files or text'
        'plan:say what would run, and why'
        'verify:compare every solver with the reference'
        'bench:measure, beside the limit of the machine'
        'demo:ten folds of large arrays, checked'
        'info:what this build has'
        'warm:compile kernels for CUDA devices elsewhere'
        'match:nearest rows of bit strings'
        'detect:find things in pictures'
        'help:help on a subcommand'
    )
    types=(f16 bf16 f32 f64 f8e4m3 f8e5m2 i8 i16 i32 i64 u8 u16 u32 u64 bool)
    solvers=(pair turned map contract contract-arg contract-several pool sliding few outer inner framed reference log-certified log-fast log-exact log-running log-two-pass direct fused openblas ordered contract-near quads bytes wide slanted columns straddle interleaved abreast staged runs patches rows small tiles slide slide-shared multi cublas tensor-sum product window pixels)
    if (( CURRENT == 2 )); then
        _describe -t commands 'modefold subcommand' commands
        _arguments '--help[examples and subcommands]' '--version[the version]'
        return
    fi
    local -a fold
    fold=(
        '--set[sizes of modes]:x=SIZE,...:'
        "--dtype[the results' types]:type:($types)"
        '--threads[how many threads]:number:'
        "--solver[this solver or none]:solver:($solvers)"
        '--device[the device]:device:(cpu cpu\:1 cpu\:2 cuda\:0 opencl\:0 auto sm\:90)'
        '--order-as-written[number elements in the order of the modes string]'
        '--order-contract[log-space products with the bits of every device]'
        '--order-free[any order of adding]'
        '--tier[of a log-space product]:tier:(exact certified fast)'
        '*--define[an operation of your own]:text:'
        '--help[examples and options]'
    )
    local command=$words[2]
    shift words
    (( CURRENT-- ))
    case $command in
    run)
        _arguments $fold '*'{-o,--output}'[where a result goes]:file:_files' '--json[as JSON]' \
            '1:modes:' '2:expression:' '*:input:_files'
        ;;
    plan) _arguments $fold '1:modes:' '2:expression:' '*:input:_files' ;;
    verify)
        _arguments '--count[random problems]:number:' '--seed[which ones]:number:' '--seconds[stop after]:seconds:' \
            "--solver[only this one]:solver:($solvers automatic)" '--device[the device]:device:(cpu cpu\:1 cpu\:2 cuda\:0 opencl\:0 auto sm\:90)' \
            '*--file[problems from a file]:file:_files' '*--define[an operation of your own]:text:' '--help[examples and options]' '*:problem:'
        ;;
    bench)
        _arguments '--rows[which rows]:rows:(all reduce broadcast operations turned windows calls)' \
            "--dtype[types]:type:($types)" '--elements[of the largest operand]:number:' '--bytes[the same]:number:' \
            '--limit[what to compare with]:limit:(same read copy)' '--seconds[for each row]:seconds:' '--threads[how many threads]:number:' \
            "--solver[this solver or none]:solver:($solvers)" '--device[the device]:device:(cpu cpu\:1 cpu\:2 cuda\:0 opencl\:0 auto sm\:90)' \
            '--json[as JSON]' '*--define[an operation of your own]:text:' '--help[examples and options]' '*:problem:'
        ;;
    demo) _arguments '--threads[how many threads]:number:' '--help[what it does]' ;;
    info) _arguments '--device[the device]:device:(cpu cpu\:1 cpu\:2 cuda\:0 opencl\:0 auto sm\:90)' '--help[what it does]' ;;
    warm)
        _arguments '--arch[architectures of CUDA]:architectures:(sm_80 sm_86 sm_89 sm_90 sm_100 sm_120)' \
            '*--file[problems from a file]:file:_files' '--set[sizes of modes]:x=SIZE,...:' \
            '--strict[spilled registers are a failure]' '*--define[an operation of your own]:text:' '--help[examples and options]' '*:problem:'
        ;;
    match)
        _arguments '(-o --output)'{-o,--output}'[the matches]:file:_files' '--indices[nearest rows]:file:_files' \
            '--distances[their distances]:file:_files' '--k[how many nearest rows]:number:' \
            '--difference[bits to the second nearest]:bits:' '--ratio[to the second distance]:ratio:' \
            '--max-distance[bits at most]:bits:' '--cross-check[nearest both ways]' \
            '--query-mask[queries that take part]:file:_files' '--train-mask[rows that take part]:file:_files' \
            '--threads[how many threads]:number:' '--device[the device]:device:(cpu cpu\:1 cpu\:2 cuda\:0 opencl\:0 auto)' \
            '--solver[on a GPU]:solver:(popc multi tensor)' '--json[as JSON]' '--help[examples and options]' '1:queries:_files' '2:train:_files'
        ;;
    detect)
        _arguments '*'{-o,--output}'[a PNG with the boxes]:file:_files' '--names[names of the classes]:file:_files' \
            '--threshold[scores above it]:number:' '--overlap[of boxes that count as one]:number:' \
            '--rules[which boxes stay]:rules:(darknet course)' '--letterbox[keep the proportions]' \
            '--backend[how it runs]:backend:(scalar openblas simd cublas cuda opencl)' '--precision[of numbers]:precision:(f32 tf32 f16)' \
            '--threads[how many threads]:number:' \
            '--unfused[every step of its own]' '--order-contract[the bits of every device]' '--times[a table of times]' \
            '--trials[runs of each picture]:number:' '--json[as JSON]' '--help[examples and options]' '*:file:_files'
        ;;
    help) _describe -t commands 'modefold subcommand' commands ;;
    esac
}
_modefold "$@"
