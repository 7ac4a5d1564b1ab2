class JobsController < ApplicationController
  MAXIMUM_CV_BYTES = 1_048_576
  PDF_MAGIC = "%PDF-".b.freeze

  before_action -> { require_role("employer") }, only: :create
  before_action -> { require_role("seeker") }, only: :apply

  def index
    jobs = Job.search(params.permit(:title, :company, :location)).includes(:user).order(id: :desc)
    render json: jobs.map(&:as_answer)
  end

  def create
    job = current_user.jobs.new(params.permit(:title, :company, :location, :description, :salary))
    job.save ? render(json: job.as_answer, status: :created) : render_invalid(job.errors)
  end

  def apply
    job = Job.find(params[:id])
    return render_conflict if job.job_applications.exists?(user: current_user)

    application = job.job_applications.new(user: current_user, cover_letter: params[:cover_letter])
    application.valid?
    problem = cv_problem
    application.errors.add(:cv, problem) if problem
    return render_invalid(application.errors) if application.errors.any?

    application.update!(cv_name: cv.original_filename, cv: cv_bytes)
    render json: application.as_answer, status: :created
  end

  private

  def cv
    params[:cv] if params[:cv].is_a?(ActionDispatch::Http::UploadedFile)
  end

  def cv_bytes
    cv.rewind
    cv.read.b
  end

  # What is wrong with the CV that was sent, or nil.
  def cv_problem
    return "can't be blank" if cv.nil?
    return "is too large" if cv.size > MAXIMUM_CV_BYTES
    return if cv.original_filename.downcase.end_with?(".pdf") && cv_bytes.start_with?(PDF_MAGIC)

    "must be a PDF"
  end

  def render_conflict
    render json: { error: "Already applied" }, status: :conflict
  end
end
