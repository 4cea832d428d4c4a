# bash completion for modefold
_modefold()
{
    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} options
    local types='f16 bf16 f32 f64 f8e4m3 f8e5m2 i8 i16 i32 i64 u8 u16 u32 u64 bool'
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W 'run plan verify bench demo info warm match detect help --help --version' -- "$word"))
        return
    fi
    case $previous in
    --dtype) COMPREPLY=($(compgen -W "$types" -- "$word")); return ;;
    --solver) COMPREPLY=($(compgen -W 'pair turned map contract contract-arg contract-several pool sliding few outer inner framed reference log-certified log-fast log-exact log-running log-two-pass direct fused openblas ordered contract-near quads bytes wide slanted columns straddle interleaved abreast staged runs patches rows small tiles slide slide-shared multi cublas tensor-sum product window pixels automatic' -- "$word")); return ;;
    --device) COMPREPLY=($(compgen -W 'cpu cpu:1 cpu:2 cuda:0 opencl:0 auto sm:90' -- "$word")); return ;;
    --tier) COMPREPLY=($(compgen -W 'exact certified fast' -- "$word")); return ;;
    --rows) COMPREPLY=($(compgen -W 'all reduce broadcast operations turned windows calls' -- "$word")); return ;;
    --limit) COMPREPLY=($(compgen -W 'same read copy' -- "$word")); return ;;
    --backend) COMPREPLY=($(compgen -W 'scalar openblas simd cublas cuda opencl' -- "$word")); return ;;
    --precision) COMPREPLY=($(compgen -W 'f32 tf32 f16' -- "$word")); return ;;
    --rules) COMPREPLY=($(compgen -W 'darknet course' -- "$word")); return ;;
    -o | --output | --file | --indices | --distances | --names | --query-mask | --train-mask) COMPREPLY=($(compgen -f -- "$word")); return ;;
    --arch) COMPREPLY=($(compgen -W 'sm_80 sm_86 sm_89 sm_90 sm_100 sm_120' -- "$word")); return ;;
    --set | --define | --threads | --count | --seed | --seconds | --elements | --bytes | --k | --difference | --ratio | --max-distance | --threshold | --overlap | --trials) return ;;
    esac
    case ${COMP_WORDS[1]} in
    run) options='--output --set --dtype --threads --solver --device --order-as-written --order-contract --order-free --tier --json --define' ;;
    plan) options='--set --dtype --threads --solver --device --order-as-written --order-contract --order-free --tier --define' ;;
    verify) options='--count --seed --seconds --solver --device --file --define' ;;
    bench) options='--rows --dtype --elements --bytes --seconds --threads --solver --device --limit --json --define' ;;
    demo) options='--threads' ;;
    info) options='--device' ;;
    warm) options='--arch --file --set --strict --define' ;;
    match) options='--output --indices --distances --k --difference --ratio --max-distance --cross-check --query-mask --train-mask --threads --device --solver --json' ;;
    detect) options='--output --names --threshold --overlap --rules --letterbox --backend --precision --threads --unfused --order-contract --times --trials --json' ;;
    help) COMPREPLY=($(compgen -W 'run plan verify bench demo info warm match detect' -- "$word")); return ;;
    *) return ;;
    esac
    case $word in
    -*) COMPREPLY=($(compgen -W "$options --help" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -- "$word")) ;;
    esac
}
complete -o filenames -F _modefold modefold
