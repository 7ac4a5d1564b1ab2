class ApplicationsController < ApplicationController
  before_action :require_seeker

  def create
    job = Job.find(params[:job_id])
    return render_conflict if job.job_applications.exists?(user: current_user)

    cv = CvUpload.new(params[:cv])
    application = job.job_applications.new(user: current_user, cover_letter: params[:cover_letter])
    application.valid?
    cv.errors.each { |message| application.errors.add(:cv, message) }
    return render_invalid(application.errors) if application.errors.any?

    application.update!(cv_key: CvStore.save(cv.bytes), cv_name: cv.name, cv_size: cv.size)
    render json: application.as_answer, status: :created
  end

  private

  def render_conflict
    render json: { error: "Already applied" }, status: :conflict
  end
end
